#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "controller/journal/journal.h"
#include "engine/base/random.h"
#include "engine/base/secret.h"
#include "nodeagent/certificates/authority.h"

namespace verger::controller {

/// Types of the events in the streams "agent/<cluster>/<node>".
namespace events {
/// {token, salt, hash, hosts, expires_at, by}
inline constexpr std::string_view kAgentTokenCreated = "agent-token-created";
/// {token, key, serial, not_before, not_after, hosts, authority, certificate, by}
inline constexpr std::string_view kAgentEnrolled = "agent-enrolled";
/// {serial, not_before, not_after, authority, by}: issued, and on its way to the agent
inline constexpr std::string_view kAgentRenewed = "agent-renewed";
/// {serial, by}: the agent shows it, and no longer a former one
inline constexpr std::string_view kAgentCertificateArrived = "agent-certificate-arrived";
inline constexpr std::string_view kAgentForgotten = "agent-forgotten";  ///< {by}
}  // namespace events

/// One agent that has a certificate of vergerd's own authority.
struct EnrolledAgent {
  std::string cluster;
  std::string node;
  /// Of the certificates it may show, newest last: several while it is not known whether the
  /// newest has arrived.
  std::vector<std::string> serials;
  std::string authority;  ///< fingerprint of the root that issued it
  std::vector<std::string> hosts;
  /// Of the newest certificate that it is known to have.
  Ticks not_before{};
  Ticks not_after{};
  Ticks enrolled_at{};
};

/// A token that is not used yet.
struct OpenAgentToken {
  std::string cluster;
  std::string node;
  std::string id;
  std::string created_by;
  std::vector<std::string> hosts;
  Ticks expires_at{};
};

/// Which agents have enrolled, and the one-time tokens to do so: journaled, secrets hashed. One
/// thread; journal, authority and clock outlive it.
class AgentBook {
 public:
  struct Parts {
    Journal& journal;
    ControllerEpoch epoch;
    Random& random;
    Clock& clock;
    const certificates::Authority* authority = nullptr;  ///< null: no agent can enrol
    std::chrono::seconds certificate_lifetime = std::chrono::hours(24 * 90);
  };
  explicit AgentBook(Parts parts) : parts_(parts) {}
  /// Replays the journal. Call once.
  Result<void> load();

  struct NewToken {
    OpenAgentToken token;
    std::string secret;  ///< "vergeragent_<id>_<secret>_<fingerprint of the root>"; shown once
  };
  /// Takes the place of the node's token that is still open. `hosts`: by which the certificate will
  /// be accepted. Errors: kInvalidArgument, kUnsupported (no authority), the journal's.
  Result<NewToken> create_token(const std::string& cluster, const std::string& node,
                                std::vector<std::string> hosts, std::chrono::seconds valid_for,
                                const std::string& by);

  struct Enrolment {
    std::string cluster;
    std::string node;
    std::string certificate;
    std::string authority;  ///< PEM of the root
    Ticks not_after{};
  };
  /// The same token with the same key gets the same certificate: an answer may be lost. Errors:
  /// kUnauthorized: not a token of this controller, or replaced by a newer one; kConflict: used by
  /// another key; kTimeout: expired; kInvalidArgument: the request; the journal's.
  Result<Enrolment> enrol(std::string_view token, std::string_view request);
  /// A new certificate for an enrolled agent; from now on it is accepted beside the ones before.
  /// renew_at() stays that of the one before until has_arrived(). Errors: kNotFound,
  /// kInvalidArgument, the journal's.
  Result<certificates::Issued> renew(const std::string& cluster, const std::string& node,
                                     std::string_view request);
  /// The agent has the newest certificate, which is this one: those before are no longer
  /// accepted. Errors: kNotFound (another one was issued since), the journal's.
  Result<void> has_arrived(const std::string& cluster, const std::string& node,
                           const std::string& serial);
  /// Neither its certificate nor an open token is accepted any longer. Errors: kNotFound.
  Result<void> forget(const std::string& cluster, const std::string& node, const std::string& by);

  [[nodiscard]] std::vector<EnrolledAgent> agents() const;
  /// The same as whether agents() has any, without making it.
  [[nodiscard]] bool has_agents() const;
  [[nodiscard]] std::vector<OpenAgentToken> open_tokens() const;
  /// nullptr: not enrolled. Valid until the next change.
  [[nodiscard]] const EnrolledAgent* find(std::string_view cluster, std::string_view node) const;
  /// When two thirds of its life are over.
  [[nodiscard]] static Ticks renew_at(const EnrolledAgent& agent);

 private:
  struct Token {
    OpenAgentToken open;
    SaltedHash kept;
    std::string used_with_key;  ///< not empty: used
    bool replaced = false;
    Ticks used_at{};
    std::string certificate;
  };
  /// One that the agent may not have yet.
  struct IssuedCertificate {
    std::string serial;
    std::string authority;
    Ticks not_before{};
    Ticks not_after{};
  };
  struct Entry {
    std::optional<EnrolledAgent> agent;
    std::optional<IssuedCertificate> issued;
    Revision revision;
  };
  [[nodiscard]] certificates::Subject subject_of(const std::string& cluster,
                                                 const std::string& node,
                                                 std::vector<std::string> hosts) const;
  Result<void> append(const std::string& cluster, const std::string& node, std::string_view type,
                      std::string data);
  Result<void> fold(const JournalEvent& event);
  Result<void> fold_token(const std::string& cluster, const std::string& node,
                          const nlohmann::json& data);
  void replace_open_tokens(const std::string& cluster, const std::string& node);

  Parts parts_;
  std::map<std::string, Entry, std::less<>> entries_;  ///< by "cluster/node"
  std::map<std::string, Token, std::less<>> tokens_;   ///< by id
};

}  // namespace verger::controller
