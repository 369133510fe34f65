#include "tests/support/online/online_run.h"

#include "engine/online/comparison.h"
#include "engine/online/installation.h"
#include "engine/redaction/chunk_switch.h"

namespace verger::test {
namespace {

Result<void> drive(Job& job) {
  while (true) {
    VERGER_TRY(const auto outcome, job.step({.units = 1000}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      return {};
    }
  }
}

}  // namespace

Result<OnlineResult> run_online(FileSystem& files, const Path& directory, streams::Database& live,
                                const OnlineRun& run) {
  using online_scavenge::Standing;
  static thread_local ManualClock clock;
  static thread_local SeededRandom random(11);
  const online_scavenge::Machine machine{files, clock, random, null_log()};
  const online_scavenge::DatabasePlace place{.database = directory};
  OnlineResult result;
  VERGER_TRY(auto left_over, online_scavenge::find_resumable(files, place));
  if (left_over) {
    result.resumed = true;
    result.preparation = std::move(left_over->preparation);
    if (left_over->installed) {
      return result;
    }
  } else {
    online_scavenge::ShadowJob shadow(machine, place);
    VERGER_RETURN_IF_ERROR(drive(shadow));
    online_scavenge::NativeRunJob native(
        machine, place, run.point, {.threads = run.threads, .hash = run.hash},
        run.threads > 1 ? scavenge::make_thread_runner(run.threads) : nullptr);
    VERGER_RETURN_IF_ERROR(drive(native));
    online_scavenge::ComparisonJob comparison(machine, place, native.preparation(), run.hash);
    VERGER_RETURN_IF_ERROR(drive(comparison));
    result.preparation = comparison.preparation();
    if (native.stage() > scavenge::Stage::kMergingChunks || result.preparation.chunks.empty()) {
      if (native.stage() != scavenge::Stage::kMergingChunks) {
        return result;
      }
    }
  }
  for (const auto& chunk : result.preparation.chunks) {
    VERGER_TRY(const auto standing, online_scavenge::standing_of(files, directory, chunk));
    if (standing == Standing::kSwitched) {
      continue;
    }
    if (standing == Standing::kForeign || (run.switches && !run.switches(chunk))) {
      result.left.insert(chunk.start);
      continue;
    }
    const auto name = online_scavenge::offered_name(random.uuid().to_string());
    VERGER_RETURN_IF_ERROR(online_scavenge::offer_chunk(files, directory, chunk, name));
    redaction::ChunkSwitchJob job(files, live.transaction_log(), chunk.source.name, name);
    VERGER_RETURN_IF_ERROR(drive(job));
    if (job.result() != redaction::SwitchResult::kSuccess) {
      return Error{Errc::kRefused,
                   std::string(redaction::reason_of(job.result())) + " " + job.detail()};
    }
  }
  VERGER_RETURN_IF_ERROR(
      online_scavenge::finish_state(files, directory, result.preparation, result.left, run.hash));
  VERGER_RETURN_IF_ERROR(online_scavenge::install_state(machine, place, result.preparation));
  return result;
}

}  // namespace verger::test
