#include "nodeagent/operations/certificates/certificate_desk.h"

#include <algorithm>
#include <fmt/format.h>

#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/certificates/key.h"
#include "nodeagent/certificates/pem_text.h"
#include "nodeagent/operations/certificates/change_plan.h"

namespace verger::agent {
namespace {

using api::CertificatePhase;

constexpr std::chrono::milliseconds kOwnHandshakeLimit{5'000};
/// All peers together: within the deadline of a controller's request.
constexpr std::chrono::milliseconds kPeersLimit{12'000};
constexpr std::size_t kMostPeers = 32;
/// Answers 200 to those whom the peer takes for a node, and to others 401 (node-interface.md, 1.3).
constexpr const char* kNodesRoute = "/info/options";
constexpr int kUnauthorized = 401;

Error agent_ended() { return {Errc::kCancelled, "the agent has ended"}; }

/// Makes a key, which takes up to seconds, where it does not keep others waiting.
class KeyMaking final : public Job {
 public:
  KeyMaking(std::string type, std::string password)
      : type_(std::move(type)), password_(std::move(password)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    VERGER_TRY(key, KeyRequests::make_key(type_, password_));
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  std::string key;

 private:
  std::string type_;
  std::string password_;
};

std::string first_serial(const std::string& chain) {
  const auto read = certificates::read_details(chain);
  return read ? read->front().info.serial : std::string();
}

}  // namespace

CertificateDesk::CertificateDesk(std::shared_ptr<const CertificateAccess> access,
                                 Environment environment)
    : access_(std::move(access)),
      environment_(std::move(environment)),
      keys_(environment_.files, *access_->access, environment_.clock,
            environment_.directory / "keys"),
      reader_(environment_.files, *access_->access, environment_.stored,
              [this](const std::string& change) { return keys_.key(change); }),
      change_(environment_.files, *access_->access, environment_.clock, environment_.directory) {}

net::awaitable<Result<http::Handshake>> CertificateDesk::connect(
    http::Endpoint with, http::ClientMaterial material, std::string target,
    std::chrono::milliseconds deadline) {
  if (gone_) {
    co_return agent_ended();
  }
  if (!with.tls || !access_->shake_hands) {
    co_return Error{Errc::kUnsupported,
                    fmt::format("{}: without TLS there are no certificates", with.url())};
  }
  // As the server does where it is the client: the other one completes the chain.
  if (!material.chain.empty()) {
    material.chain = certificates::leaf_pem(material.chain);
  }
  co_return co_await access_->shake_hands(std::move(with), std::move(material), std::move(target),
                                          deadline);
}

net::awaitable<Result<api::NodeCertificates>> CertificateDesk::look(Self self) {
  const auto seen =
      co_await self->connect(self->environment_.node, {}, "/info", kOwnHandshakeLimit);
  if (self->gone_) {
    co_return agent_ended();
  }
  const auto& access = *self->access_;
  const auto found = self->live();
  const auto now = self->environment_.clock.now();
  api::NodeCertificates out{
      .live = shown_files(found, found, access.places, access.server_user, now),
      .reserved_common_name = access.places.reserved_common_name,
      .loads_ec_keys = access.places.loads_ec_keys,
      .server_owner = access.server_user ? std::optional(access.server_user->id) : std::nullopt,
      .change_problem = why_not_changeable(found, *access.access),
      .signal_problem = access.signal_problem,
      .users = self->reader_.users(access.places),
      .taken_at = format_ticks(now)};
  if (seen) {
    out.served = seen->served;
  } else {
    out.served_problem = seen.error().message;
  }
  VERGER_CO_TRY(const auto manifest, self->change_.load());
  if (manifest && manifest->complete) {
    out.change = self->shown(*manifest);
  }
  co_return out;
}

Result<api::CertificateFiles> CertificateDesk::candidate(const api::CertificateSource& source) {
  const auto present = live();
  VERGER_TRY(const auto found, reader_.candidate(source, present.key_password));
  // Owner and mode become those of the present files.
  auto out = shown_files(found, present, access_->places, std::nullopt, environment_.clock.now());
  if (auto problem = why_not_replaceable(present, found, *access_->access); !problem.empty()) {
    out.findings.push_back({.code = "agent-cannot-change",
                            .where = found.certificate.path.string(),
                            .message = std::move(problem)});
  }
  return out;
}

net::awaitable<Result<std::string>> CertificateDesk::request(Self self,
                                                             api::CertificateKeyRequest asked) {
  const auto present = self->live();
  if (auto problem = why_not_changeable(present, *self->access_->access); !problem.empty()) {
    co_return Error{Errc::kRefused, std::move(problem)};
  }
  auto type = asked.key_type;
  if (type.empty()) {
    VERGER_CO_TRY(const auto as_now,
                  certificates::key_type_of_certificate(present.certificate.content));
    type = certificates::text_of(as_now);
  }
  VERGER_CO_RETURN_IF_ERROR(certificates::parse_key_type(type));
  // As well kept as the present one, which the server opens with its password.
  const auto password =
      certificates::is_encrypted_key(present.key->content) ? present.key_password : std::string();
  if (!self->keys_.has_key(asked.change)) {
    const auto making = std::make_shared<KeyMaking>(type, password);
    VERGER_CO_RETURN_IF_ERROR(
        co_await self->environment_.jobs.run(making, std::make_shared<node::StopFlag>()));
    if (self->gone_) {
      co_return agent_ended();
    }
    VERGER_CO_RETURN_IF_ERROR(self->keys_.keep(asked.change, making->key));
  }
  co_return self->keys_.request(asked, type, password);
}

std::optional<http::ClientMaterial> CertificateDesk::side(const ChangeManifest& manifest,
                                                          bool after) const {
  const auto present = live();
  // In the phase before the leaf's and in that after it, a certificate's file changes in the
  // intermediates alone; only its leaf is shown.
  const auto neighbour = after ? CertificatePhase::kDrop : CertificatePhase::kTrust;
  const auto content = [&](const FoundFile& file) -> std::optional<std::string> {
    bool changes = false;
    for (const auto phase : {CertificatePhase::kLeaf, neighbour}) {
      for (const auto* each : manifest.of(phase)) {
        if (each->path != file.target) {
          continue;
        }
        changes = true;
        for (const bool end : {after, !after}) {
          if (phase == CertificatePhase::kLeaf && end != after) {
            continue;
          }
          if (auto found = change_.content(*each, end)) {
            return *std::move(found);
          }
        }
      }
    }
    return changes || !file.problem.empty() ? std::nullopt : std::optional(file.content);
  };
  const auto chain = content(present.certificate);
  const auto key = present.key ? content(*present.key) : std::nullopt;
  if (!chain || !key) {
    return std::nullopt;
  }
  return http::ClientMaterial{.chain = *chain, .key = *key, .key_password = present.key_password};
}

net::awaitable<api::PeerHandshake> CertificateDesk::handshake(Self self,
                                                              api::HandshakesRequest::Peer peer,
                                                              http::ClientMaterial material,
                                                              std::chrono::milliseconds deadline) {
  api::PeerHandshake out{.name = peer.name, .shown_serial = first_serial(material.chain)};
  const auto endpoint = http::parse_endpoint(peer.url);
  if (!endpoint) {
    out.problem = endpoint.error().message;
    co_return out;
  }
  const auto seen = co_await self->connect(*endpoint, std::move(material), kNodesRoute, deadline);
  if (!seen) {
    out.problem = seen.error().message;
    co_return out;
  }
  out.served = seen->served;
  out.serial = first_serial(seen->served);
  out.trusted = seen->not_trusted.empty();
  out.not_trusted = seen->not_trusted;
  out.accepted = seen->accepted;
  out.not_accepted = seen->not_accepted;
  if (seen->status == kUnauthorized) {
    out.accepted = false;
    out.not_accepted =
        "TLS accepts the certificate, but the peer does not take it for a node's (401): its common "
        "name or its usages are not those of a node";
  }
  co_return out;
}

net::awaitable<Result<std::vector<api::PeerHandshake>>> CertificateDesk::handshakes(
    Self self, api::HandshakesRequest request) {
  if (request.peers.size() > kMostPeers) {
    co_return Error{Errc::kInvalidArgument, fmt::format("at most {} peers at once", kMostPeers)};
  }
  const auto present = self->live();
  http::ClientMaterial material{.chain = present.certificate.content,
                                .key = present.key ? present.key->content : std::string(),
                                .key_password = present.key_password};
  if (request.staged) {
    VERGER_CO_TRY(const auto manifest, self->change_.load());
    auto staged =
        manifest && manifest->complete ? self->side(*manifest, /*after=*/true) : std::nullopt;
    if (!staged) {
      co_return Error{Errc::kNotFound, "no change is staged whose certificate could be shown"};
    }
    material = *std::move(staged);
  }
  material.roots = roots_of(present);
  if (material.roots.empty()) {
    co_return Error{Errc::kUnavailable,
                    "the node's trusted roots cannot be read: " +
                        (present.roots_problem.empty() ? "the agent does not know where they are "
                                                         "(--trusted-root-certificates-path)"
                                                       : present.roots_problem)};
  }
  std::vector<api::PeerHandshake> out;
  const std::chrono::milliseconds deadline =
      kPeersLimit / std::max<std::int64_t>(std::ssize(request.peers), 1);
  for (auto& peer : request.peers) {
    out.push_back(co_await handshake(self, peer, material, std::min(kOwnHandshakeLimit, deadline)));
    if (self->gone_) {
      co_return agent_ended();
    }
  }
  co_return out;
}

Result<ChangeManifest> CertificateDesk::stage(const api::CertificateStage& asked) {
  if (gone_) {
    return agent_ended();
  }
  const auto present = live();
  VERGER_TRY(const auto found, reader_.candidate(asked.source, present.key_password));
  if (!asked.digest.empty() && digest_of(found) != asked.digest) {
    return Error{Errc::kConflict,
                 "the new files are no longer those that were looked at: check them again"};
  }
  const auto serial = first_serial(found.certificate.content);
  if (!asked.serial.empty() && serial != asked.serial) {
    return Error{Errc::kConflict,
                 fmt::format("{} is the certificate {}, not {}", found.certificate.path.string(),
                             serial, asked.serial)};
  }
  return change_.stage(asked.change, present, found);
}

Result<ChangeManifest> CertificateDesk::staged(const std::string& change) const {
  if (gone_) {
    return agent_ended();
  }
  VERGER_TRY(auto manifest, change_.load());
  if (!manifest || !manifest->complete || manifest->change != change) {
    return Error{Errc::kNotFound, manifest && manifest->change != change
                                      ? fmt::format("the change {} is not staged here, but {}",
                                                    change, manifest->change)
                                      : fmt::format("the change {} is not staged here", change)};
  }
  return *std::move(manifest);
}

Result<void> CertificateDesk::switch_over(const std::string& change, CertificatePhase phase,
                                          api::ReloadBy reload) {
  VERGER_TRY(auto manifest, staged(change));
  return change_.switch_over(manifest, phase, reload);
}

Result<void> CertificateDesk::confirm_switch(const std::string& change, CertificatePhase phase) {
  VERGER_TRY(auto manifest, staged(change));
  VERGER_RETURN_IF_ERROR(change_.confirm_switch(manifest, phase));
  // Roots alone have no phase of the leaf. A crash in between leaves them to the store's own limit.
  return phase == CertificatePhase::kTrust ? Result<void>() : forget_uploads(manifest);
}

Result<void> CertificateDesk::forget_uploads(const ChangeManifest& manifest) {
  const auto staged_at = parse_ticks(manifest.staged_at);
  if (!manifest.set.empty() && environment_.forget && staged_at) {
    const auto content = environment_.stored(manifest.set);
    const auto set = content ? api::parse_certificate_set(as_text(*content))
                             : Result<api::CertificateSet>(content.error());
    // Of other nodes nothing is here. The set comes last: what a crash leaves is removed the next
    // time.
    for (const auto& [name, node] : set ? set->nodes : api::CertificateSet().nodes) {
      environment_.forget(node.certificate, *staged_at);
      environment_.forget(node.key, *staged_at);
      for (const auto& root : node.roots) {
        environment_.forget(root.sha256, *staged_at);
      }
    }
    environment_.forget(manifest.set, *staged_at);
  }
  return keys_.drop(manifest.change);
}

Result<void> CertificateDesk::restore(const std::string& change, CertificatePhase phase) {
  VERGER_TRY(auto manifest, staged(change));
  return change_.restore(manifest, phase);
}

Result<void> CertificateDesk::confirm_restore(const std::string& change, CertificatePhase phase) {
  VERGER_TRY(auto manifest, staged(change));
  return change_.confirm_restore(manifest, phase);
}

Result<void> CertificateDesk::discard(const std::string& change) {
  if (gone_) {
    return agent_ended();
  }
  VERGER_TRY(const auto manifest, change_.load());
  if (manifest && manifest->change == change) {
    VERGER_RETURN_IF_ERROR(forget_uploads(*manifest));
    VERGER_RETURN_IF_ERROR(change_.discard(*manifest));
  }
  return keys_.drop(change);
}

Result<void> CertificateDesk::discard_unfinished(const std::string& change) {
  if (gone_) {
    return agent_ended();
  }
  VERGER_TRY(const auto manifest, change_.load());
  return manifest && manifest->change == change && !manifest->complete ? change_.discard(*manifest)
                                                                       : Result<void>();
}

Result<ChangeFiles::Look> CertificateDesk::look_at(const std::string& change,
                                                   CertificatePhase phase) const {
  VERGER_TRY(const auto manifest, staged(change));
  return change_.look(manifest, phase);
}

api::CertificateChange CertificateDesk::shown(const ChangeManifest& manifest) const {
  api::CertificateChange out{.change = manifest.change,
                             .staged_at = manifest.staged_at,
                             .serial = manifest.serial,
                             .serial_before = manifest.serial_before};
  for (const auto phase :
       {CertificatePhase::kTrust, CertificatePhase::kLeaf, CertificatePhase::kDrop}) {
    auto commands = restore_commands(manifest, phase);
    const auto files = static_cast<std::int32_t>(commands.size());
    if (files > 0) {
      commands.push_back(fmt::format("curl -X POST -d '' -u admin {}/admin/reloadconfig",
                                     environment_.node.url()));
    }
    out.phases.push_back({.phase = phase,
                          .state = std::string(to_string(manifest.state(phase))),
                          .files = files,
                          .restore_commands = std::move(commands)});
  }
  return out;
}

std::string CertificateDesk::hindrance(api::ReloadBy reload) const {
  if (reload == api::ReloadBy::kSignal) {
    if (!access_->signal_problem.empty() || !access_->signal_server) {
      return access_->signal_problem.empty() ? "this agent cannot send a signal to its server"
                                             : access_->signal_problem;
    }
  }
  return why_not_changeable(live(), *access_->access);
}

net::awaitable<Result<void>> CertificateDesk::reload(Self self, client::NodeClient& node,
                                                     api::ReloadBy by) {
  if (self->gone_) {
    co_return agent_ended();
  }
  // Before the server: it may show the new certificate in its next connection.
  if (self->access_->reload_own) {
    self->access_->reload_own();
  }
  if (by == api::ReloadBy::kSignal) {
    if (!self->access_->signal_server) {
      co_return Error{Errc::kUnsupported, "this agent cannot send a signal to its server"};
    }
    co_return co_await self->access_->signal_server();
  }
  const auto answer = co_await node.reload();
  if (answer.done() || (answer.unknown() && answer.code == "queued")) {
    co_return Result<void>();
  }
  co_return client::to_error(answer.verdict, answer.code, answer.why);
}

net::awaitable<CertificateProof> CertificateDesk::prove(Self self, ChangeManifest manifest,
                                                        CertificatePhase phase, bool after) {
  const CertificateSides sides{.before = self->side(manifest, /*after=*/false),
                               .after = self->side(manifest, /*after=*/true)};
  const auto node = self->environment_.node;
  co_return co_await agent::prove(
      [self](http::Endpoint with, http::ClientMaterial material, std::string target,
             std::chrono::milliseconds deadline) {
        return self->connect(std::move(with), std::move(material), std::move(target), deadline);
      },
      node, std::move(manifest), phase, after, sides);
}

}  // namespace verger::agent
