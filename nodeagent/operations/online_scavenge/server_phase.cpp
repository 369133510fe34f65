#include "nodeagent/operations/online_scavenge/server_phase.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "nodeagent/client/judge.h"
#include "nodeagent/operations/fresh_look.h"

namespace verger::agent::beside {
namespace {

using memory::kSaved;
using memory::kScavengeId;
using memory::kTarget;

/// Each start after the first one was made necessary by a restart of the server, or by an error
/// that it reports; one that fails three times fails again.
constexpr int kMostServerRuns = 3;
/// A server writes the end of a run into its log after it no longer shows the run as current, and
/// that may take a moment where no leader is there to write: ten seconds (20 looks, kServerPoll
/// apart). A run whose end is not seen by then counts as lost, and is started again.
constexpr int kSilentPolls = 20;
constexpr std::int32_t kRunEntries = 20;

/// The end of the server's run, where its log tells it.
net::awaitable<std::optional<client::Outcome<client::ScavengeEnd>>> end_of_run(Shared work,
                                                                               std::string id) {
  const auto log = client::to_result(co_await work->node.client.scavenge_log(id, kRunEntries));
  if (!log) {
    co_return std::nullopt;
  }
  const bool ended = std::ranges::any_of(
      *log, [](const api::ScavengeEvent& event) { return event.type == "$scavengeCompleted"; });
  co_return ended ? std::optional(client::end_of_scavenge(*log, id)) : std::nullopt;
}

void report_run(const Shared& work) {
  const auto* inspection = work->node.inspection();
  const auto running = inspection == nullptr ? std::nullopt : inspection->running_scavenge();
  work->report("server", running ? running->chunks_done : -1, running ? running->chunks_total : -1,
               running ? "chunks" : "");
}

net::awaitable<bool> target_is_finished(Shared work) {
  const auto looked = co_await fresh_look(work->node);
  if (!looked) {
    co_return false;
  }
  const auto finished = (*looked)->last_finished_point();
  co_return finished && finished->number >= work->memory.value(kTarget, 0LL);
}

}  // namespace

net::awaitable<Ended> server_phase(Shared work) {
  std::string last;
  int silent = 0;
  for (int runs = 0; runs <= kMostServerRuns;) {
    if (work->stopping()) {
      const auto id = work->memory.value(kScavengeId, std::string());
      if (work->cancelled() && !id.empty()) {
        static_cast<void>(co_await work->node.client.stop_scavenge(id));
      }
      co_return stopped();
    }
    if (!co_await server_is_there(work)) {
      if (!work->stopping()) {
        co_return OnlineFailure{.code = "no_answer",
                                .text = "the server does not answer; its next scavenge continues"};
      }
      continue;
    }
    report_run(work);
    const auto current = client::to_result(co_await work->node.client.current_scavenge());
    if (!current || !current->id.empty()) {
      if (current && work->memory.value(kScavengeId, std::string()) != current->id) {
        work->memory[kScavengeId] = current->id;
        work->remember();
      }
      // Until nothing runs; the server needs as long as its index takes, so there is no limit here.
      // The deadline is the step's, and a cancel stops the run.
      co_await work->node.timers.sleep_for(kServerPoll);
      continue;
    }
    const auto id = work->memory.value(kScavengeId, std::string());
    const auto end = id.empty() ? std::nullopt : co_await end_of_run(work, id);
    const bool finished = co_await target_is_finished(work);
    if (finished && (end || id.empty() || ++silent > kSilentPolls)) {
      if (end && end->value) {
        work->memory[kSaved] = work->memory.value(kSaved, 0LL) + end->value->space_saved;
      }
      co_return std::nullopt;
    }
    const bool succeeded = end && end->value && end->value->result == "Success";
    // Done, and the log does not show it yet; or the log shows Success, and the state not yet Done.
    if (finished || (!id.empty() && (!end || succeeded) && ++silent <= kSilentPolls)) {
      co_await work->node.timers.sleep_for(kServerPoll);
      continue;
    }
    if (end) {
      last = end->why;
    }
    silent = 0;
    if (runs == kMostServerRuns) {
      break;
    }
    ++runs;
    client::ScavengeParameters how{.threads = work->parameters.threads, .sync_only = true};
    if (const auto percent = work->node.control->throttle().percent; percent < 100) {
      how.threads = 1;
      how.throttle_percent = percent;
    }
    const auto started = co_await work->node.client.start_scavenge(how);
    VERGER_FAILPOINT("online.server.started");
    if (started.value && !started.value->id.empty() && !started.refused()) {
      work->memory[kScavengeId] = started.value->id;
      work->remember();
      if (auto* inspection = work->node.inspection()) {
        inspection->expect_scavenge();
      }
    } else if (started.refused()) {
      last = started.why;
      if (started.code == "lacks_role" || started.code == "bad_credentials" ||
          started.code == "invalid") {
        co_return OnlineFailure{.code = "refused", .text = last};
      }
    }
    // A server shows a run as current a moment after it has accepted it.
    co_await work->node.timers.sleep_for(kServerPoll);
  }
  co_return OnlineFailure{
      .code = "refused",
      .text = fmt::format("the server did not finish what is left of the scavenge: "
                          "{}",
                          last)};
}

}  // namespace verger::agent::beside
