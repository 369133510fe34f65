#include "controller/executor/detail/core.h"

#include <fmt/format.h>

#include <boost/system/system_error.hpp>

#include "controller/executor/detail/run_driver.h"
#include "controller/executor/detail/waker.h"
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

Result<void> Core::record(Run& run, std::vector<NewEvent> new_events) {
  auto appended = run.writer.append(new_events);
  if (!appended) {
    if (appended.error().code == Errc::kRefused) {
      stopping = true;
      parts.network.log.error("another controller has taken over; nothing is done any more",
                              {{"epoch", std::to_string(parts.epoch.value())}});
    }
    return appended.error();
  }
  auto revision = run.writer.revision().value() - static_cast<std::int64_t>(new_events.size());
  for (auto& event : new_events) {
    JournalEvent written;
    written.stream = run.writer.stream();
    written.revision = Revision(++revision);
    written.type = std::move(event.type);
    written.data = std::move(event.data);
    written.at = parts.network.clock.now();
    written.epoch = parts.epoch;
    const auto applied = apply(run.state, written);
    VERGER_ASSERT(applied.has_value());
  }
  return {};
}

Result<void> Core::reload(Run& run) {
  VERGER_TRY(const auto events, parts.journal.read(run.writer.stream()));
  RunState state;
  for (const auto& event : events) {
    VERGER_CHECK(apply(state, event));
  }
  if (!state.plan) {
    return Error{Errc::kCorruption, fmt::format("{}: it never started", run.writer.stream())};
  }
  run.writer = StreamWriter(parts.journal, run.writer.stream(), parts.epoch, state.revision);
  run.state = std::move(state);
  run.group_failed = false;
  run.in_trouble = false;
  return {};
}

net::awaitable<void> drive_run(std::shared_ptr<Core> core, std::shared_ptr<Run> run) {
  auto& log = core->parts.network.log;
  while (!core->stopping) {
    std::string trouble;
    try {
      co_await std::make_shared<RunDriver>(core, run)->drive();
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
