#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
#include "nodeagent/operations/certificates/certificate_operations.h"
#include "nodeagent/operations/certificates/restoring.h"
#include "nodeagent/operations/waiting_limit.h"

namespace verger::agent {
namespace {

using api::CertificatePhase;
using nlohmann::json;
using Kind = Observation::Kind;

constexpr const char* kAt = "at";              ///< in the memory: when the first file was renamed
constexpr const char* kReloaded = "reloaded";  ///< the server was asked to reload
constexpr const char* kUndoCode = "undoCode";  ///< the files are being restored, and why
constexpr const char* kUndoText = "undoText";

Observation is_running(std::string text) {
  return {.kind = Kind::kRunning, .code = {}, .text = std::move(text)};
}

/// Why a phase must not be switched, or restored, now: the phases form a stack.
Result<void> check_order(const ChangeManifest& manifest, CertificatePhase phase, bool restoring) {
  for (const auto other :
       {CertificatePhase::kTrust, CertificatePhase::kLeaf, CertificatePhase::kDrop}) {
    if (restoring && other > phase && !manifest.is_untouched(other)) {
      return Error{Errc::kConflict, fmt::format("the phase {} is switched: restore it first",
                                                api::to_string(other))};
    }
    if (!restoring && other < phase && !manifest.of(other).empty() &&
        manifest.state(other) != PhaseState::kSwitched) {
      return Error{Errc::kConflict,
                   fmt::format("the phase {} comes before, and is {}", api::to_string(other),
                               to_string(manifest.state(other)))};
    }
  }
  return {};
}

class CertificateSwitchOperation final : public Operation {
 public:
  explicit CertificateSwitchOperation(CertificateDesk::Self desk) : desk_(std::move(desk)) {}
  [[nodiscard]] std::string_view kind() const override { return "certificate_switch"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return {"change", "phase", "reload"};
  }

  net::awaitable<Result<void>> look(LocalNode /*node*/, OperationRecord& record) override {
    VERGER_CO_TRY(const auto asked, api::parse_certificate_switch(record.request.parameters_json));
    if (!desk_) {
      co_return no_certificates_known();
    }
    VERGER_CO_TRY(const auto manifest, desk_->staged(asked.change));
    VERGER_CO_RETURN_IF_ERROR(check_order(manifest, asked.phase, /*restoring=*/false));
    if (manifest.of(asked.phase).empty()) {
      co_return Result<void>();
    }
    if (manifest.state(asked.phase) != PhaseState::kStaged) {
      co_return Error{Errc::kConflict, fmt::format("the phase {} of the change {} is {} already",
                                                   api::to_string(asked.phase), asked.change,
                                                   to_string(manifest.state(asked.phase)))};
    }
    if (auto problem = desk_->hindrance(asked.reload); !problem.empty()) {
      co_return Error{Errc::kRefused, std::move(problem)};
    }
    // What cannot be seen before could not be proven after.
    const auto before =
        co_await CertificateDesk::prove(desk_, manifest, CertificatePhase::kLeaf, /*after=*/false);
    if (before.verdict == CertificateProof::Verdict::kNoAnswer) {
      co_return Error{Errc::kUnavailable, before.text};
    }
    const bool is_old = before.verdict == CertificateProof::Verdict::kShown;
    if (asked.phase != CertificatePhase::kDrop && !is_old) {
      co_return Error{Errc::kConflict,
                      fmt::format("the server does not use the files that are on its disk: {}; "
                                  "reload it, and stage the change again",
                                  before.text)};
    }
    co_return Result<void>();
  }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY(const auto asked, api::parse_certificate_switch(record.request.parameters_json));
    VERGER_CO_TRY(const auto manifest, desk_->staged(asked.change));
    if (manifest.of(asked.phase).empty()) {
      co_return Result<void>();
    }
    auto memory = memory_of(record);
    memory[kAt] = format_ticks(node.clock.now());
    record.memory_json = memory.dump();
    if (const auto renamed = desk_->switch_over(asked.change, asked.phase, asked.reload);
        !renamed) {
      if (renamed.error().code == Errc::kUnknownOutcome) {
        note_undo(record, std::string(to_string(Errc::kIo)), renamed.error().message);
      }
      co_return renamed.error();
    }
    VERGER_FAILPOINT("agent.certificates.before-reload");
    const auto answer = co_await CertificateDesk::reload(desk_, node.client, asked.reload);
    if (!answer && answer.error().code != Errc::kUnknownOutcome) {
      // The server has read nothing yet; what it reads at a start has to fit what peers expect.
      note_undo(record, std::string(to_string(answer.error().code)), answer.error().message);
      co_return Error{Errc::kUnknownOutcome, answer.error().message};
    }
    memory[kReloaded] = true;
    record.memory_json = memory.dump();
    co_return Result<void>();
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) override {
    const auto asked = api::parse_certificate_switch(record.request.parameters_json);
    if (!asked || !desk_) {
      co_return Observation{.kind = Kind::kNotHappened, .code = {}, .text = "it was not begun"};
    }
    if (memory_of(record).contains(kUndoCode)) {
      co_return co_await undo(node, record, *asked);
    }
    const auto manifest = desk_->staged(asked->change);
    if (!manifest) {
      const bool taken = manifest.error().code == Errc::kNotFound;
      co_return Observation{.kind = taken ? Kind::kFailed : Kind::kUnknown,
                            .code = taken ? "undone" : "",
                            .text = manifest.error().message};
    }
    if (manifest->of(asked->phase).empty()) {
      co_return done(record, *manifest, asked->phase,
                     {.serial = manifest->serial_before, .text = "there is nothing to change"});
    }
    const auto state = manifest->state(asked->phase);
    if (state == PhaseState::kRestoring || state == PhaseState::kRestored) {
      // By certificate_restore, or by this operation before the agent was restarted: then it may
      // not be at its end.
      note_undo(record, "undone", "the files before were restored");
      co_return co_await undo(node, record, *asked);
    }
    if (state == PhaseState::kStaged) {
      co_return Observation{.kind = Kind::kNotHappened, .code = {}, .text = "no file was replaced"};
    }
    const auto found = desk_->look_at(asked->change, asked->phase);
    if (!found) {
      co_return Observation{.kind = Kind::kUnknown, .code = {}, .text = found.error().message};
    }
    co_return co_await judge(node, record, *asked, *manifest, *found);
  }

 private:
  static void note_undo(OperationRecord& record, std::string code, std::string text) {
    auto memory = memory_of(record);
    memory[kUndoCode] = std::move(code);
    memory[kUndoText] = std::move(text);
    record.memory_json = memory.dump();
  }

  Observation done(const OperationRecord& record, const ChangeManifest& manifest,
                   CertificatePhase phase, CertificateProof proof) const {
    return {.kind = Kind::kDone,
            .code = {},
            .text = api::to_text(api::CertificateSwitched{
                .phase = phase,
                .files = static_cast<std::int32_t>(manifest.of(phase).size()),
                .serial = std::move(proof.serial),
                .serial_before = manifest.serial_before,
                .at = memory_of(record).value(kAt, std::string()),
                .proven = std::move(proof.text),
                .not_proven = std::move(proof.not_proven)})};
  }

  net::awaitable<Observation> judge(LocalNode node, OperationRecord& record,
                                    api::CertificateSwitch asked, ChangeManifest manifest,
                                    ChangeFiles::Look found) {
    const bool reloaded = memory_of(record).contains(kReloaded);
    if (found == ChangeFiles::Look::kForeign) {
      co_return Observation{.kind = Kind::kFailed,
                            .code = "conflict",
                            .text =
                                "the node's files were replaced by someone else meanwhile, and "
                                "are left as they are"};
    }
    if (found != ChangeFiles::Look::kAfter) {
      note_undo(record, "interrupted",
                "the agent was restarted in the middle; the files before were restored");
      co_return co_await undo(node, record, asked);
    }
    auto proof = co_await CertificateDesk::prove(desk_, manifest, asked.phase, /*after=*/true);
    // Of a phase that connections cannot show, the reload is all there is.
    if (proof.verdict == CertificateProof::Verdict::kShown &&
        (proof.not_proven.empty() || reloaded)) {
      if (const auto stored = desk_->confirm_switch(asked.change, asked.phase); !stored) {
        co_return is_running(stored.error().message);
      }
      co_return done(record, manifest, asked.phase, std::move(proof));
    }
    if (!reloaded) {
      note_undo(record, "interrupted",
                "the agent was restarted before the server used the new files; those before were "
                "restored");
      co_return co_await undo(node, record, asked);
    }
    if (!waited_longer_than(kSwitchLimit, node.clock.now(), record)) {
      co_return is_running(proof.text);
    }
    note_undo(record, "no_effect",
              fmt::format("the server does not use the new files: {}; its log says why. The files "
                          "before were restored",
                          proof.text));
    co_return co_await undo(node, record, asked);
  }

  net::awaitable<Observation> undo(LocalNode node, OperationRecord& record,
                                   api::CertificateSwitch asked) {
    const auto memory = memory_of(record);
    const auto why = memory.value(kUndoText, std::string());
    auto seen = co_await await_restored(desk_, node, record, asked.change, asked.phase);
    if (seen.kind == Kind::kDone) {
      co_return Observation{.kind = Kind::kFailed,
                            .code = memory.value(kUndoCode, std::string("no_effect")),
                            .text = why};
    }
    seen.text = why.empty() ? seen.text : fmt::format("{}: {}", why, seen.text);
    co_return seen;
  }

  CertificateDesk::Self desk_;
};

class CertificateRestoreOperation final : public Operation {
 public:
  explicit CertificateRestoreOperation(CertificateDesk::Self desk) : desk_(std::move(desk)) {}
  [[nodiscard]] std::string_view kind() const override { return "certificate_restore"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return {"change", "phase"};
  }
  [[nodiscard]] bool needs_own_directories() const override { return false; }

  net::awaitable<Result<void>> look(LocalNode /*node*/, OperationRecord& record) override {
    VERGER_CO_TRY(const auto asked, api::parse_certificate_restore(record.request.parameters_json));
    if (!desk_) {
      co_return no_certificates_known();
    }
    const auto manifest = desk_->staged(asked.change);
    if (!manifest) {
      co_return manifest.error().code == Errc::kNotFound ? Result<void>() : manifest.error();
    }
    co_return check_order(*manifest, asked.phase, /*restoring=*/true);
  }

  /// All of it is in observe(), which may be repeated.
  net::awaitable<Result<void>> act(LocalNode /*node*/, OperationRecord& /*record*/) override {
    co_return Result<void>();
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) override {
    const auto asked = api::parse_certificate_restore(record.request.parameters_json);
    if (!asked || !desk_) {
      co_return Observation{.kind = Kind::kNotHappened, .code = {}, .text = "it was not begun"};
    }
    co_return co_await await_restored(desk_, node, record, asked->change, asked->phase);
  }

 private:
  CertificateDesk::Self desk_;
};

}  // namespace

std::unique_ptr<Operation> make_certificate_switch_operation(CertificateDesk::Self desk) {
  return std::make_unique<CertificateSwitchOperation>(std::move(desk));
}

std::unique_ptr<Operation> make_certificate_restore_operation(CertificateDesk::Self desk) {
  return std::make_unique<CertificateRestoreOperation>(std::move(desk));
}

std::vector<std::unique_ptr<Operation>> certificate_operations(const CertificateDesk::Self& desk) {
  std::vector<std::unique_ptr<Operation>> out;
  out.push_back(make_certificate_stage_operation(desk));
  out.push_back(make_certificate_discard_operation(desk));
  out.push_back(make_certificate_switch_operation(desk));
  out.push_back(make_certificate_restore_operation(desk));
  return out;
}

}  // namespace verger::agent
