#include "nodeagent/redaction/online_redaction.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "engine/base/failpoint.h"
#include "engine/redaction/redacted_copy.h"

namespace verger::online {
namespace {

using redaction::CopyRequest;
using redaction::RecordPlace;

/// How long readers of the node may hold a file that was replaced.
constexpr std::chrono::milliseconds kFormerFileWait{30'000};
constexpr std::chrono::milliseconds kFormerFileLook{20};

/// Where the records are now, by chunk file.
struct Found {
  std::map<std::string, std::vector<RecordPlace>> by_chunk{};
  std::vector<std::string> missing{};
  std::vector<std::string> in_open_chunk{};
};

struct Work {
  std::shared_ptr<client::RedactionClient> node;
  OnlineRequest request;
  OnlineEnvironment env;
  std::shared_ptr<OnlineReport> report;
  std::shared_ptr<const node::StopFlag> stop;
  std::shared_ptr<client::HeldChunkLock> lock;
  std::set<LogPosition> done{};
};

net::awaitable<Result<Found>> find_events(std::shared_ptr<const Work> work) {
  const auto& events = work->request.events;
  std::vector<client::EventToFind> wanted;
  wanted.reserve(events.size());
  for (const auto& event : events) {
    wanted.push_back({.stream = event.stream, .number = event.number});
  }
  VERGER_CO_TRY(const auto positions, to_result(co_await work->node->positions(std::move(wanted))));
  Found found;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto name = redaction::name_of(events[i].stream, events[i].number);
    if (positions.at(i).empty()) {
      found.missing.push_back(name);
    }
    for (const auto& at : positions.at(i)) {
      if (!at.chunk_completed) {
        found.in_open_chunk.push_back(name);
      }
      found.by_chunk[at.chunk_file].push_back(
          {.event = events[i], .position = at.position, .file_offset = at.file_offset});
    }
  }
  co_return found;
}

/// The node's index and the list have to mean the same records.
Result<void> check_positions(const Work& work, const Found& found) {
  if (work.request.positions.empty()) {
    return {};
  }
  std::set<LogPosition> named;
  for (const auto& [chunk, places] : found.by_chunk) {
    for (const auto& place : places) {
      named.insert(place.position);
    }
  }
  std::vector<LogPosition> differing;
  std::ranges::set_symmetric_difference(named, work.request.positions,
                                        std::back_inserter(differing));
  if (differing.empty()) {
    return {};
  }
  return Error{Errc::kConflict,
               fmt::format("log position {}: {}; nothing was changed: redact this node while it is "
                           "stopped",
                           differing.front(),
                           named.contains(differing.front())
                               ? "the node has another record of one of the events there than the "
                                 "list of redactions"
                               : "a record of the list lies in its files, and the node does not "
                                 "name it")};
}

/// All of it, before the first change.
Result<void> check(const Work& work, const Found& found) {
  if (!found.missing.empty()) {
    return Error{Errc::kNotFound,
                 fmt::format("the node has no {}; nothing was changed: leave these out",
                             fmt::join(found.missing, ", "))};
  }
  if (!found.in_open_chunk.empty()) {
    return Error{Errc::kRefused,
                 fmt::format("{}: in the chunk file that is still written to, and only completed "
                             "ones are redacted; nothing was changed: append a scavenge point on "
                             "the leader (a scavenge does) and repeat then",
                             fmt::join(found.in_open_chunk, ", "))};
  }
  VERGER_RETURN_IF_ERROR(check_positions(work, found));
  for (const auto& [chunk, places] : found.by_chunk) {
    const auto looked = redaction::look_at(work.env.files, {.directory = work.request.directory,
                                                            .chunk_file = chunk,
                                                            .records = places,
                                                            .metadata = work.request.metadata});
    if (!looked) {
      return Error{looked.error().code, looked.error().message + "; nothing was changed"};
    }
  }
  return {};
}

net::awaitable<Result<redaction::RedactedCopy>> make_copy(std::shared_ptr<Work> work,
                                                          std::string chunk,
                                                          std::vector<RecordPlace> places) {
  const auto job =
      std::make_shared<redaction::RedactedCopyJob>(work->env.files, work->env.random,
                                                   CopyRequest{.directory = work->request.directory,
                                                               .chunk_file = std::move(chunk),
                                                               .records = std::move(places),
                                                               .metadata = work->request.metadata});
  VERGER_CO_RETURN_IF_ERROR(co_await work->env.jobs.run(job, work->stop));
  co_return job->copy();
}

/// Readers of the node may still have it open; then it goes with the last of them.
net::awaitable<Result<void>> former_file_is_gone(std::shared_ptr<Work> work, Path former) {
  for (auto waited = std::chrono::milliseconds(0);; waited += kFormerFileLook) {
    VERGER_CO_TRY(const bool there, work->env.files.exists(former));
    if (!there) {
      co_return Result<void>{};
    }
    if (waited >= kFormerFileWait && work->request.former_may_stay) {
      co_return Result<void>{};
    }
    if (waited >= kFormerFileWait) {
      co_return Error{Errc::kIo,
                      fmt::format("{}: was replaced, and the node has not removed it: it still "
                                  "holds the data, and goes at the node's next start",
                                  former.string())};
    }
    co_await work->env.timers.sleep_for(kFormerFileLook);
  }
}

/// The positions are the node's own after the switch, and the records there read as redacted.
net::awaitable<Result<std::string>> check_switched(std::shared_ptr<Work> work, std::string former,
                                                   std::vector<RecordPlace> places) {
  VERGER_CO_TRY(const auto found, co_await find_events(work));
  std::string now;
  for (const auto& [chunk, there] : found.by_chunk) {
    for (const auto& place : there) {
      if (std::ranges::find(places, place.position, &RecordPlace::position) == places.end()) {
        continue;
      }
      now = chunk;
      const auto path = work->request.directory / chunk;
      const auto blanked =
          redaction::check_blanked(work->env.files, path, place, work->request.metadata);
      if (!blanked) {
        co_return blanked.error();
      }
    }
  }
  if (now.empty() || now == former) {
    co_return Error{Errc::kConflict,
                    fmt::format("{}: the node answered that it was switched, and names no other "
                                "file for its events",
                                (work->request.directory / former).string())};
  }
  VERGER_CO_RETURN_IF_ERROR(co_await former_file_is_gone(work, work->request.directory / former));
  co_return now;
}

/// What became of switches whose answer was lost, by their records, which lie in `chunk` now: all
/// of these are redacted, and the switch was made; or some are not, and it is made anew.
void settle_unanswered(OnlineReport& report, const std::string& chunk,
                       const std::set<LogPosition>& positions, bool redacted) {
  std::erase_if(report.unanswered, [&](UnansweredSwitch& before) {
    const bool is_here = std::ranges::any_of(
        before.positions, [&](LogPosition position) { return positions.contains(position); });
    if (is_here && redacted) {
      before.chunk.to = chunk;
      report.chunks.push_back(std::move(before.chunk));
    }
    return is_here;
  });
}

net::awaitable<Result<void>> redact_chunk(std::shared_ptr<Work> work, std::string chunk,
                                          std::vector<RecordPlace> places) {
  VERGER_CO_TRY(const auto copy, co_await make_copy(work, chunk, places));
  auto& report = *work->report;
  report.already += copy.already;
  UnansweredSwitch begun{.chunk = {.from = chunk,
                                   .to = {},
                                   .records = copy.blanked,
                                   .md5_before = copy.md5_before,
                                   .md5_after = copy.md5_after,
                                   .digest_before = copy.digest_before,
                                   .digest_after = copy.digest_after}};
  for (const auto& place : places) {
    begun.positions.insert(place.position);
    work->done.insert(place.position);
  }
  settle_unanswered(report, chunk, begun.positions, /*redacted=*/copy.name.empty());
  if (copy.name.empty()) {
    co_return Result<void>{};
  }
  VERGER_FAILPOINT("online-redaction.copied");
  const auto switched = co_await work->lock->switch_chunk(chunk, copy.name);
  if (!switched.done()) {
    if (switched.refused()) {
      static_cast<void>(work->env.files.remove(work->request.directory / copy.name));
    } else {
      report.unanswered.push_back(std::move(begun));
    }
    // An unknown outcome leaves the copy: the node may be about to rename it.
    auto error = client::to_error(switched.verdict, switched.code, switched.why);
    co_return error.within(fmt::format("{}: not switched", chunk));
  }
  VERGER_FAILPOINT("online-redaction.switched");
  auto now = co_await check_switched(work, chunk, std::move(places));
  if (!now) {
    report.unanswered.push_back(std::move(begun));
    co_return now.error();
  }
  work->env.log.info("redacted events of a chunk file",
                     {{"from", chunk}, {"to", *now}, {"records", fmt::to_string(copy.blanked)}});
  begun.chunk.to = *std::move(now);
  report.chunks.push_back(std::move(begun.chunk));
  co_return Result<void>{};
}

/// Those that are still to be done, of the first chunk file that has some.
std::optional<std::pair<std::string, std::vector<RecordPlace>>> next_chunk(const Work& work,
                                                                           const Found& found) {
  for (const auto& [chunk, places] : found.by_chunk) {
    const bool open = std::ranges::any_of(
        places, [&](const RecordPlace& place) { return !work.done.contains(place.position); });
    if (open) {
      return std::pair(chunk, places);
    }
  }
  return std::nullopt;
}

net::awaitable<Result<void>> redact_all(std::shared_ptr<Work> work) {
  work->report->already = 0;
  VERGER_CO_TRY(work->report->removed,
                redaction::remove_copies(work->env.files, work->request.directory));
  VERGER_CO_TRY(auto found, co_await find_events(work));
  VERGER_CO_RETURN_IF_ERROR(check(*work, found));
  const auto total = found.by_chunk.size();
  for (std::size_t done = 0;; ++done) {
    auto next = next_chunk(*work, found);
    if (work->env.progress) {
      work->env.progress(done, total);
    }
    if (!next) {
      break;
    }
    if (work->stop->requested()) {
      co_return Error{Errc::kCancelled, "the redaction was stopped; run it again to finish it"};
    }
    VERGER_CO_RETURN_IF_ERROR(
        co_await redact_chunk(work, std::move(next->first), std::move(next->second)));
    // Names and offsets of before the switch are no longer the node's.
    VERGER_CO_TRY(found, co_await find_events(work));
  }
  co_return Result<void>{};
}

}  // namespace

net::awaitable<Result<void>> redact_online(std::shared_ptr<client::RedactionClient> node,
                                           OnlineRequest request, OnlineEnvironment environment,
                                           std::shared_ptr<OnlineReport> report,
                                           std::shared_ptr<const node::StopFlag> stop) {
  VERGER_CO_TRY(auto held, to_result(co_await node->lock()));
  const std::shared_ptr<client::HeldChunkLock> lock = std::move(held);
  // The lock is a call of the node's connection, which has to outlive its release.
  VERGER_CO_RETURN_IF_ERROR(co_await redact_while_locked(
      node, lock, std::move(request), environment, std::move(report), std::move(stop)));
  if (const auto released = co_await lock->release(); !released.done()) {
    // The work is done, and the end of this process frees the lock in any case.
    environment.log.warning("the chunk lock was not given back in order",
                            {{"reason", released.why}});
  }
  co_return Result<void>{};
}

net::awaitable<Result<void>> redact_while_locked(std::shared_ptr<client::RedactionClient> node,
                                                 std::shared_ptr<client::HeldChunkLock> lock,
                                                 OnlineRequest request,
                                                 OnlineEnvironment environment,
                                                 std::shared_ptr<OnlineReport> report,
                                                 std::shared_ptr<const node::StopFlag> stop) {
  VERGER_FAILPOINT("online-redaction.locked");
  const auto work = std::make_shared<Work>(Work{.node = std::move(node),
                                                .request = std::move(request),
                                                .env = std::move(environment),
                                                .report = std::move(report),
                                                .stop = std::move(stop),
                                                .lock = std::move(lock)});
  co_return co_await redact_all(work);
}

}  // namespace verger::online
