#include "controller/api/detail/removal_rounds.h"

#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "controller/executor/events.h"
#include "controller/journal/chain.h"
#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "engine/base/directories.h"

namespace verger::controller::detail {

using nlohmann::json;

namespace {

constexpr std::size_t kEventsReadAtOnce = 1'000;
/// Removed at once; a stream that goes as a whole may make it more.
constexpr std::size_t kEventsInRound = 5'000;
constexpr std::size_t kArchiveBytesInRound = std::size_t{16} << 20U;

}  // namespace

net::awaitable<void> let_others_in() {
  co_await net::post(co_await net::this_coro::executor, net::use_awaitable);
}

json json_of(const std::vector<std::pair<Sequence, Sequence>>& ranges) {
  auto out = json::array();
  for (const auto& [first, last] : ranges) {
    out.push_back(json::array({first.value(), last.value()}));
  }
  return out;
}

void RemovalRounds::begin(std::string by, std::string reason) {
  by_ = std::move(by);
  reason_ = std::move(reason);
  round_ = {};
  archived_.clear();
}

void RemovalRounds::take(const JournalEvent& event, Keep keep, std::int64_t& count) {
  round_.removal.events.push_back({event.sequence, event.stream, event.revision, event.hash});
  ++count;
  if (keep == Keep::kArchive) {
    round_.archive_bytes += event.data.size();
    round_.archive.emplace(event.sequence, event);
  }
}

Result<std::vector<JournalEvent>> RemovalRounds::page_of(const std::string& stream,
                                                         Revision after) {
  return journal_.read(stream, after, kEventsReadAtOnce);
}

/// The stream's name belongs to the round that has its last events: none of them is removed before
/// all are taken.
net::awaitable<Result<void>> RemovalRounds::take_stream(std::string stream, Keep keep,
                                                        std::int64_t* count) {
  for (Revision at(0);;) {
    VERGER_CO_TRY(const auto page, page_of(stream, at));
    if (page.empty()) {
      break;
    }
    for (const auto& event : page) {
      take(event, event.type == events::kStepProgress ? Keep::kNothing : keep, *count);
    }
    at = page.back().revision;
    co_await let_others_in();
  }
  round_.removal.streams.push_back(std::move(stream));
  co_return co_await remove_if_full();
}

net::awaitable<Result<void>> RemovalRounds::remove_if_full() {
  if (round_.removal.events.size() < kEventsInRound &&
      round_.archive_bytes < kArchiveBytesInRound) {
    co_return Result<void>{};
  }
  co_return co_await remove();
}

Result<void> RemovalRounds::record(json data) {
  data["by"] = by_;
  data["reason"] = reason_;
  VERGER_TRY(const auto written,
             journal_.append(kJournalStream, kAnyRevision,
                             {NewEvent{std::string(events::kEventsRemoved), data.dump()}}, epoch_));
  return {};
}

net::awaitable<Result<void>> RemovalRounds::remove() {
  auto work = std::exchange(round_, {});
  if (work.removal.events.empty()) {
    co_return Result<void>{};
  }
  std::ranges::sort(work.removal.events, {}, &Removal::Event::sequence);
  std::vector<std::pair<Sequence, Sequence>> ranges;
  ranges.reserve(work.removal.events.size());
  for (const auto& event : work.removal.events) {
    ranges.emplace_back(event.sequence, event.sequence);
  }
  json about{{"events", work.removal.events.size()}, {"ranges", json_of(joined(ranges))}};
  if (!work.archive.empty()) {
    VERGER_CO_TRY(const auto text, archive_text(work));
    const auto name =
        fmt::format("journal-{:012}-{:012}.jsonl", work.archive.begin()->first.value(),
                    work.archive.rbegin()->first.value());
    VERGER_CO_RETURN_IF_ERROR(make_directories_durably(files_, archive_));
    VERGER_CO_RETURN_IF_ERROR(write_file_durably(files_, archive_ / name, as_bytes(text)));
    about["archive"] = name;
    about["archive_sha256"] = to_hex(sha256(as_bytes(text)));
    archived_.push_back(name);
  }
  VERGER_CO_RETURN_IF_ERROR(record(std::move(about)));
  VERGER_CO_RETURN_IF_ERROR(journal_.remove(work.removal, epoch_));
  removed_ += static_cast<std::int64_t>(work.removal.events.size());
  co_await let_others_in();
  co_return Result<void>{};
}

Result<std::string> RemovalRounds::archive_text(const Round& work) {
  VERGER_TRY(const auto gone, journal_.removed());
  std::map<Sequence, std::string> hashes;
  for (const auto& event : work.removal.events) {
    hashes[event.sequence] = event.hash;
  }
  for (const auto& range : gone) {
    hashes[range.last] = range.hash;
  }
  std::string out;
  for (const auto& [sequence, event] : work.archive) {
    const Sequence before(sequence.value() - 1);
    auto hash = hashes.find(before);
    if (hash == hashes.end() && before.value() > 0) {
      VERGER_TRY(const auto found, journal_.read_all(Sequence(before.value() - 1), 1));
      hash = hashes
                 .emplace(before, found.empty() || found.front().sequence != before
                                      ? std::string()
                                      : found.front().hash)
                 .first;
    }
    const json line{{"sequence", sequence.value()},
                    {"stream", event.stream},
                    {"revision", event.revision.value()},
                    {"type", event.type},
                    {"data", event.data},
                    {"time", format_ticks(event.at)},
                    {"at", event.at.value()},
                    {"epoch", event.epoch.value()},
                    {"hash", event.hash},
                    {"hash_before", hash == hashes.end() ? std::string() : hash->second}};
    out += line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  }
  return out;
}

}  // namespace verger::controller::detail
