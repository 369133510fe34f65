#include "nodeagent/operations/certificates/restoring.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/certificates/certificate_operations.h"

namespace verger::agent {
namespace {

using Kind = Observation::Kind;

constexpr const char* kSince = "restoreSince";  ///< in the memory, as are the next
constexpr const char* kReloadedAt = "restoreReloadedAt";
/// A request that was lost, or came while the server was starting, is repeated.
constexpr std::chrono::seconds kReloadAgain{5};

std::int64_t ticks_of_seconds(std::chrono::seconds time) { return time.count() * kTicksPerSecond; }

/// Whether `limit` has passed since the time that is noted under `name`; notes it where none is, or
/// the clock was set back.
bool has_passed(nlohmann::json& memory, const char* name, std::chrono::seconds limit, Ticks now) {
  const auto since = memory.value(name, std::int64_t{-1});
  if (since < 0 || since > now.value()) {
    memory[name] = now.value();
    return false;
  }
  return now.value() - since > ticks_of_seconds(limit);
}

Observation restored(const ChangeManifest& manifest, api::CertificatePhase phase,
                     const CertificateProof& proof) {
  return {.kind = Kind::kDone,
          .code = {},
          .text = api::to_text(api::CertificateSwitched{
              .phase = phase,
              .files = static_cast<std::int32_t>(manifest.of(phase).size()),
              .serial = proof.serial,
              .serial_before = manifest.serial,
              .proven = proof.text,
              .not_proven = proof.not_proven})};
}

Observation nothing_to_restore(api::CertificatePhase phase) {
  return {
      .kind = Kind::kDone,
      .code = {},
      .text = api::to_text(api::CertificateSwitched{
          .phase = phase, .proven = "the phase was not switched: there is nothing to restore"})};
}

}  // namespace

Error no_certificates_known() {
  return {Errc::kUnsupported,
          "this agent does not know its node's certificates (--certificate-file, "
          "--certificate-private-key-file, --trusted-root-certificates-path)"};
}

net::awaitable<Observation> await_restored(CertificateDesk::Self desk, LocalNode node,
                                           OperationRecord& record, std::string change,
                                           api::CertificatePhase phase) {
  const auto manifest = desk->staged(change);
  if (!manifest) {
    co_return manifest.error().code == Errc::kNotFound
        ? nothing_to_restore(phase)
        : Observation{.kind = Kind::kUnknown, .code = {}, .text = manifest.error().message};
  }
  if (manifest->is_untouched(phase)) {
    co_return nothing_to_restore(phase);
  }
  const auto found = desk->look_at(change, phase);
  auto memory = memory_of(record);
  const bool late = has_passed(memory, kSince, kRestoreLimit, node.clock.now());
  const auto running = [&](std::string text) {
    record.memory_json = memory.dump();
    return Observation{.kind = Kind::kRunning, .code = {}, .text = std::move(text)};
  };
  if (!found || *found != ChangeFiles::Look::kBefore ||
      manifest->state(phase) != PhaseState::kRestoring) {
    if (const auto done = desk->restore(change, phase); !done) {
      const bool final =
          done.error().code == Errc::kConflict || done.error().code == Errc::kCorruption || late;
      if (!final) {
        co_return running(done.error().message);
      }
      co_return Observation{
          .kind = Kind::kFailed,
          .code = done.error().code == Errc::kConflict ? "conflict" : "not_restored",
          .text = done.error().message};
    }
  }
  std::string reload_problem;
  if (!memory.contains(kReloadedAt) ||
      has_passed(memory, kReloadedAt, kReloadAgain, node.clock.now())) {
    memory[kReloadedAt] = node.clock.now().value();
    if (const auto asked = co_await CertificateDesk::reload(desk, node.client, manifest->reload);
        !asked) {
      reload_problem = asked.error().message;
    }
  }
  const auto proof = co_await CertificateDesk::prove(desk, *manifest, phase, /*after=*/false);
  // Without a reload that was asked for, a phase that connections cannot show is not done.
  const bool shown = proof.verdict == CertificateProof::Verdict::kShown &&
                     (proof.not_proven.empty() || reload_problem.empty());
  if (shown) {
    static_cast<void>(desk->confirm_restore(change, phase));
    co_return restored(*manifest, phase, proof);
  }
  if (!late) {
    co_return running(reload_problem.empty() ? proof.text : reload_problem);
  }
  const bool silent = proof.verdict == CertificateProof::Verdict::kNoAnswer;
  co_return Observation{
      .kind = Kind::kFailed,
      .code = silent ? "no_answer" : "not_restored",
      .text = fmt::format("the files before are back{}: {}{}",
                          silent ? ", and the server uses them once it starts; it does not answer"
                                 : ", and the server does not use them; look at its log, or "
                                   "restart it",
                          proof.text, reload_problem.empty() ? "" : "; " + reload_problem)};
}

}  // namespace verger::agent
