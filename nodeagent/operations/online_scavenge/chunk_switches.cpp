#include "nodeagent/operations/online_scavenge/chunk_switches.h"

#include <algorithm>

#include "engine/base/failpoint.h"
#include "engine/online/installation.h"
#include "nodeagent/operations/online_scavenge/chunk_lock.h"

namespace verger::agent::beside {
namespace {

using online_scavenge::PreparedChunk;
using online_scavenge::Standing;
using std::chrono::milliseconds;

/// A server that refuses these refuses all.
constexpr std::size_t kMostRefusals = 3;

/// Rests after a switch as the throttle says.
net::awaitable<void> rest_after(Shared work, std::uint64_t bytes, std::chrono::nanoseconds took) {
  using Seconds = std::chrono::duration<double>;
  const auto throttle = work->node.control->throttle();
  Seconds due = Seconds(took) * ((100.0 - throttle.percent) / throttle.percent);
  if (throttle.bytes_per_second > 0) {
    due = std::max(
        due, Seconds(static_cast<double>(bytes) / static_cast<double>(throttle.bytes_per_second)) -
                 Seconds(took));
  }
  // In pieces, so that a cancel or another throttle ends it at once.
  while (due > Seconds(0) && !work->stopping() && work->node.control->throttle() == throttle) {
    const auto piece = std::min<Seconds>(due, kServerPoll);
    co_await work->node.timers.sleep_for(std::chrono::ceil<milliseconds>(piece));
    due -= piece;
  }
}

/// One chunk that waits. A refusal, or a lost connection, leaves the lock lost.
net::awaitable<Ended> switch_chunk(Shared work, PreparedChunk chunk) {
  const auto name = online_scavenge::offered_name(work->machine.random.uuid().to_string());
  const auto offered = co_await call(work, [work, chunk, name] {
    return online_scavenge::offer_chunk(work->machine.files, work->place.database, chunk, name);
  });
  if (!offered) {
    co_return failure_of(offered.error());
  }
  const auto began = work->node.clock.monotonic();
  const auto switched = co_await work->lock->switch_chunk(chunk.source.name, name);
  VERGER_FAILPOINT("online.switch.answered");
  work->lock_is_lost = !switched.done();
  if (switched.done()) {
    work->node.log.info("a scavenged chunk was switched in", {{"chunk", chunk.source.name}});
    co_await rest_after(work, chunk.made.size, work->node.clock.monotonic() - began);
    co_return std::nullopt;
  }
  if (!switched.refused()) {
    // The server may be about to rename it; what became of it is seen when the lock is taken again.
    work->node.log.warning("what became of a switch is not known",
                           {{"chunk", chunk.source.name}, {"reason", switched.why}});
    co_return std::nullopt;
  }
  const auto removed = co_await call(work, [work, name]() -> Result<void> {
    return work->machine.files.remove(work->place.database / name);
  });
  if (!removed && removed.error().code != Errc::kNotFound) {
    work->node.log.warning("an offered chunk file was not removed",
                           {{"reason", removed.error().message}});
  }
  if (switched.code == "switch_refused") {
    ++work->refusals;
    work->refusal = fmt::format("{}: {}", chunk.source.name, switched.why);
    work->left.insert(chunk.start);
    work->node.log.warning("the server refused a scavenged chunk", {{"reason", work->refusal}});
  }
  co_return std::nullopt;
}

net::awaitable<Result<Standing>> standing(Shared work, PreparedChunk chunk) {
  const auto found = std::make_shared<Standing>(Standing::kForeign);
  VERGER_CO_RETURN_IF_ERROR(co_await call(work, [work, chunk, found]() -> Result<void> {
    VERGER_TRY(*found,
               online_scavenge::standing_of(work->machine.files, work->place.database, chunk));
    return {};
  }));
  co_return *found;
}

}  // namespace

net::awaitable<Ended> switch_chunks(Shared work, std::shared_ptr<Switched> sum) {
  const auto total = static_cast<std::int64_t>(work->preparation.chunks.size());
  for (const auto& chunk : work->preparation.chunks) {
    while (true) {
      if (!work->lock || work->lock_is_lost) {
        if (auto failed = co_await take_lock_again(work)) {
          // What is switched stays. The state is as before: the server does all of it again.
          co_return failed;
        }
      }
      const auto now = co_await standing(work, chunk);
      if (!now) {
        co_return failure_of(now.error());
      }
      if (*now == Standing::kSwitched) {
        ++sum->chunks;
        sum->saved += static_cast<std::int64_t>(chunk.source.size) -
                      static_cast<std::int64_t>(chunk.made.size);
        sum->removed += static_cast<std::int64_t>(chunk.records_removed);
        sum->bytes += static_cast<std::int64_t>(chunk.made.size);
        break;
      }
      if (*now == Standing::kForeign || work->left.contains(chunk.start) || work->stopping() ||
          work->refusals >= kMostRefusals || work->installed) {
        work->left.insert(chunk.start);
        break;
      }
      if (auto failed = co_await switch_chunk(work, chunk)) {
        co_return failed;
      }
    }
    if (work->stopping() && !work->cancelled()) {
      co_return stopped();  // the agent ends: the next one continues from here
    }
    work->report("switch", sum->chunks, total, "chunks", sum->bytes);
  }
  co_return std::nullopt;
}

}  // namespace verger::agent::beside
