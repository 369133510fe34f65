#include "controller/executor/detail/core.h"

#include <algorithm>
#include <fmt/format.h>

#include <boost/system/system_error.hpp>

#include "controller/executor/detail/run_driver.h"
#include "controller/executor/detail/waker.h"
#include "controller/executor/events.h"
#include "engine/base/assert.h"

// A run's life: events into the journal and into its state, and starting over from the journal
// whenever that failed.
namespace verger::controller::detail {
void Run::wake() {
  for (const auto& weak : std::exchange(wakers, {})) {
    if (const auto waker = weak.lock()) {
      waker->channel.try_send(boost::system::error_code{});
    }
  }
}

void Run::stop_deadlines(Monotonic begin, Monotonic end) {
  const auto counted = std::max(begin, deadlines_stopped_until);
  if (end <= counted) {
    return;
  }
  deadlines_stopped_until = end;
  for (auto& [stage, deadline] : deadlines) {
    deadline += end - counted;
  }
}

Result<std::vector<JournalEvent>> Core::write(Run& run, std::vector<NewEvent> events) {
  auto written = run.writer.append(std::move(events));
  if (!written && written.error().code == Errc::kRefused) {
    stopping = true;
    parts.network.log.error("another controller has taken over; this one is no longer active",
                            {{"epoch", std::to_string(parts.epoch.value())}});
  }
  return written;
}

Result<void> Core::record_start(Run& run, std::shared_ptr<const planner::Plan> plan,
                                std::string by) {
  auto text = fmt::format(R"({{"by":{},"cluster":{},"hash":{},"plan":{}}})",
                          planner::json_quoted(by), planner::json_quoted(plan->cluster),
                          planner::json_quoted(plan->hash), planner::text_of(*plan));
  VERGER_TRY(const auto written, write(run, {{std::string(events::kRunStarted), std::move(text)}}));
  begin(run.state, written.front(), std::move(plan), std::move(by));
  return {};
}

Result<void> Core::record(Run& run, std::vector<RunEvent> new_events) {
  std::vector<NewEvent> texts;
  texts.reserve(new_events.size());
  for (const auto& event : new_events) {
    texts.push_back({event.type, event.data.dump()});
  }
  VERGER_TRY(const auto written, write(run, std::move(texts)));
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto applied = apply(run.state, written[i], new_events[i].data);
    VERGER_ASSERT(applied.has_value());
  }
  if (has_ended(run.state.status) || run.state.revision.value() - run.snapshot_tried.value() >=
                                         parts.options.events_between_snapshots) {
    keep_snapshot(run);
  }
  return {};
}

void Core::keep_snapshot(Run& run) {
  run.snapshot_tried = run.state.revision;
  const auto kept = parts.journal.save_snapshot(snapshot_of(run.state), parts.epoch);
  if (!kept) {
    parts.network.log.warning("no snapshot of the run is kept; the next start reads its events",
                              {{"run", run.state.id}, {"reason", kept.error().message}});
  }
}

Result<void> Core::reload(Run& run) {
  VERGER_TRY(auto state, replay_run(parts.journal, run.writer.stream()));
  run.writer = StreamWriter(parts.journal, run.writer.stream(), parts.epoch, state.revision);
  run.state = std::move(state);
  run.snapshot_tried = run.state.revision;
  run.group_failed = false;
  run.in_trouble = false;
  return {};
}

net::awaitable<void> drive_run(std::shared_ptr<Core> core, std::shared_ptr<Run> run) {
  auto& log = core->parts.network.log;
  while (!core->stopping) {
    std::string trouble;
    try {
      RunDriver driver(core, run);
      co_await driver.drive();
      co_return;
    } catch (const Stopped&) {
      co_return;
    } catch (const JournalTrouble& problem) {
      trouble = problem.error.message;
    } catch (const boost::system::system_error& error) {
      if (error.code() == net::error::operation_aborted) {
        co_return;
      }
      trouble = error.what();
    } catch (const std::exception& error) {
      trouble = error.what();
    }
    // As after a restart: what the journal holds is what happened, the rest is looked for.
    log.error("the run starts over from the journal",
              {{"run", run->state.id}, {"reason", trouble}});
    for (bool reloaded = false; !reloaded && !core->stopping;) {
      co_await core->parts.network.timers.sleep_for(core->parts.options.poll_interval);
      if (core->stopping) {
        co_return;
      }
      const auto result = core->reload(*run);
      reloaded = result.has_value();
      if (!reloaded) {
        log.error("the journal cannot be read", {{"reason", result.error().message}});
      }
    }
  }
}

}  // namespace verger::controller::detail
