#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/certificates/issuing.h"
#include "nodeagent/http/message.h"
#include "tests/support/controller/virtual_time.h"

namespace verger::test {

/// An authority with real keys and certificates; EC keys, since they are made in no time.
struct FakeAuthority {
  std::string certificate{};
  std::string key{};
  static FakeAuthority make(const std::string& name, Ticks now, int days = 3650);
  [[nodiscard]] std::string issue(const std::string& key_or_request,
                                  const certificates::CertificateTerms& terms) const;
};

/// The files of a node, or what its process has read of them. PEM.
struct FakeCertificateFiles {
  std::string chain{};
  std::string key{};
  std::map<std::string, std::string> roots{};  ///< by file name
  friend bool operator==(const FakeCertificateFiles&, const FakeCertificateFiles&) = default;
};

/// The certificates of one fake node, and what its agent does with them.
struct FakeCertificates {
  FakeCertificateFiles disk{};
  FakeCertificateFiles loaded{};
  std::vector<std::string> addresses{};
  std::map<std::string, std::string> store{};           ///< of the agent, by SHA-256
  std::map<std::string, std::string> requests{};        ///< keys that the agent has made, by change
  std::map<std::string, FakeCertificateFiles> paths{};  ///< by the certificate's path
  struct Change {
    std::string change{};
    FakeCertificateFiles next{};
    std::map<api::CertificatePhase, FakeCertificateFiles> before{};  ///< of phases that are done
  };
  std::optional<Change> change{};
  bool changes_key = false;  ///< `next.key` is a new one

  // faults
  bool disk_full = false;
  /// In this phase the node keeps what it has read, and the agent restores the files.
  std::optional<api::CertificatePhase> reload_fails_in{};
  bool reload_lies = false;      ///< it keeps its leaf, and the agent says that all is well
  bool refuses_clients = false;  ///< as a client; its handshakes as a server are good
  std::vector<api::CertificateFinding> findings{};  ///< of the agent, about a candidate
  std::string change_problem{};
  std::vector<api::UserCertificate> users{};

  // what the tests count
  int switches = 0;
  int restores = 0;

  [[nodiscard]] std::string serial() const;  ///< of what it shows
};

/// Makes all nodes' certificates; n1 is at 10.0.0.1.
class FakeCertificateCluster {
 public:
  FakeCertificateCluster(VirtualTime& time, int nodes);
  /// A leaf for that node, of a key of its own.
  FakeCertificateFiles leaf_of(
      const FakeAuthority& by, int node, int days = 365,
      const std::function<void(certificates::CertificateTerms&)>& change = {}) const;
  [[nodiscard]] certificates::CertificateTerms terms_of(int node, int days = 365) const;
  FakeCertificates& node(const std::string& name) { return nodes.at(name); }
  /// Puts new files where source path finds them, with the roots `roots`.
  void offer(const std::string& node, FakeCertificateFiles files);
  [[nodiscard]] std::map<std::string, std::string> serials() const;
  /// All that is on the nodes' disks and in their processes.
  [[nodiscard]] std::map<std::string, std::pair<FakeCertificateFiles, FakeCertificateFiles>> all()
      const;

  // --- the agent interface
  std::optional<http::Response> answer(const std::string& node, const http::Request& request);
  struct Done {
    std::string error_code{};
    std::string error{};
    std::string result{"{}"};
  };
  /// nullopt: another kind.
  std::optional<Done> operate(const std::string& node, const std::string& kind,
                              const std::string& parameters);

  std::map<std::string, FakeCertificates> nodes;
  FakeAuthority authority;
  /// Whether a node can be reached at all.
  std::function<bool(const std::string&)> is_up = [](const std::string&) { return true; };

 private:
  Result<FakeCertificateFiles> candidate(FakeCertificates& node,
                                         const api::CertificateSource& source) const;
  [[nodiscard]] api::CertificateFiles describe(const FakeCertificateFiles& files,
                                               const std::string& path) const;
  [[nodiscard]] api::NodeCertificates certificates_of(const FakeCertificates& node) const;
  [[nodiscard]] std::vector<api::PeerHandshake> handshakes(const std::string& from,
                                                           const api::HandshakesRequest& asked);
  Done stage(FakeCertificates& node, const std::string& parameters);
  static Done switch_files(FakeCertificates& node, const std::string& parameters);
  static Done restore(FakeCertificates& node, const std::string& parameters);
  [[nodiscard]] std::string refused_by(const FakeCertificateFiles& shown,
                                       const FakeCertificateFiles& by) const;

  VirtualTime& time_;
};

}  // namespace verger::test
