#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nodeagent/client/node_client.h"
#include "nodeagent/node/job_runner.h"
#include "nodeagent/operations/certificates/certificate_access.h"
#include "nodeagent/operations/certificates/certificate_proof.h"
#include "nodeagent/operations/certificates/change_files.h"
#include "nodeagent/operations/certificates/found_certificates.h"
#include "nodeagent/operations/certificates/key_requests.h"

namespace verger::agent {

/// All that an agent does with its node's certificates; the routes and the operations are thin
/// shells around it. One executor. Its coroutines keep it alive; once it is abandoned they end with
/// kCancelled, and touch nothing.
class CertificateDesk {
 public:
  struct Environment {
    http::Endpoint node;
    FileSystem& files;
    Clock& clock;
    node::JobRunner& jobs;
    /// Of the agent's state directory; made when it is needed.
    Path directory;
    /// A file of the agent's store.
    std::function<Result<Bytes>(std::string_view sha256)> stored;
    /// Removes a file from it, unless it was stored after `since`. What cannot be removed the store
    /// drops once it is too old.
    std::function<void(std::string_view sha256, Ticks since)> forget{};
  };
  using Self = std::shared_ptr<CertificateDesk>;

  CertificateDesk(std::shared_ptr<const CertificateAccess> access, Environment environment);

  /// As a crash.
  void abandon() { gone_ = true; }

  // --- What there is; changes nothing.
  static net::awaitable<Result<api::NodeCertificates>> look(Self self);
  Result<api::CertificateFiles> candidate(const api::CertificateSource& source);
  static net::awaitable<Result<std::vector<api::PeerHandshake>>> handshakes(
      Self self, api::HandshakesRequest request);

  /// Makes the key of a change, once, and a request signed by it.
  static net::awaitable<Result<std::string>> request(Self self, api::CertificateKeyRequest asked);

  // --- The change. Errors: ChangeFiles's; kNotFound: another change is staged, or none.
  Result<ChangeManifest> stage(const api::CertificateStage& asked);
  Result<ChangeManifest> staged(const std::string& change) const;
  Result<void> switch_over(const std::string& change, api::CertificatePhase phase,
                           api::ReloadBy reload);
  Result<void> confirm_switch(const std::string& change, api::CertificatePhase phase);
  Result<void> restore(const std::string& change, api::CertificatePhase phase);
  Result<void> confirm_restore(const std::string& change, api::CertificatePhase phase);
  /// Nothing happens where that change is not staged.
  Result<void> discard(const std::string& change);
  /// What a crash left while files were being copied for it.
  Result<void> discard_unfinished(const std::string& change);
  [[nodiscard]] Result<ChangeFiles::Look> look_at(const std::string& change,
                                                  api::CertificatePhase phase) const;
  [[nodiscard]] api::CertificateChange shown(const ChangeManifest& manifest) const;

  // --- The server.
  /// Why its certificates cannot be changed or it cannot be asked so; empty: they can.
  [[nodiscard]] std::string hindrance(api::ReloadBy reload) const;
  /// Has it read its files again. Errors: kUnknownOutcome: it may have; others: it certainly did
  /// not.
  static net::awaitable<Result<void>> reload(Self self, client::NodeClient& node, api::ReloadBy by);
  /// Whether it uses the files of the phase, or those before.
  static net::awaitable<CertificateProof> prove(Self self, ChangeManifest manifest,
                                                api::CertificatePhase phase, bool after);

 private:
  [[nodiscard]] FoundCertificates live() const { return reader_.live(access_->places); }
  /// A side of the change, as a client shows it; nullopt: no copy is left.
  [[nodiscard]] std::optional<http::ClientMaterial> side(const ChangeManifest& manifest,
                                                         bool after) const;
  net::awaitable<Result<http::Handshake>> connect(http::Endpoint with,
                                                  http::ClientMaterial material, std::string target,
                                                  std::chrono::milliseconds deadline);
  static net::awaitable<api::PeerHandshake> handshake(Self self, api::HandshakesRequest::Peer peer,
                                                      http::ClientMaterial material,
                                                      std::chrono::milliseconds deadline);
  /// Removes what was brought or made for a change that has been staged: among it are keys, and
  /// from then on their copies beside the live files are all that is needed.
  Result<void> forget_uploads(const ChangeManifest& manifest);

  std::shared_ptr<const CertificateAccess> access_;
  Environment environment_;
  KeyRequests keys_;
  CertificateReader reader_;
  ChangeFiles change_;
  bool gone_ = false;
};

}  // namespace verger::agent
