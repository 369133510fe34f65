#include "engine/tool/detail/expected_entries.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "engine/streams/transaction_reader.h"
#include "engine/tool/detail/parallel.h"
#include "engine/tool/progress.h"

namespace verger::tool {
namespace {

namespace flags = log::prepare_flags;

/// Entries held in memory by all threads together: 192 MB.
constexpr std::uint64_t kEntriesInMemory = 8'000'000;

}  // namespace

/// Reads the chunks [first, last) of a log into one part.
struct ExpectedEntries::Reader {
  const log::TransactionLog& log;
  const index::Index& index;
  Part& part;
  std::atomic<std::uint64_t>& done;

  Result<void> read(const std::shared_ptr<const log::Chunk>& chunk) {
    VERGER_TRY(auto scanner, log::ChunkScanner::open(chunk, chunk->start_position()));
    for (;;) {
      VERGER_TRY(const auto record, scanner.next());
      if (!record) {
        return {};
      }
      done.fetch_add(record->framed.size(), std::memory_order_relaxed);
      VERGER_RETURN_IF_ERROR(add(*record));
    }
  }

  Result<void> add(const log::LogRecord& record) {
    namespace streams_detail = streams::detail;
    if (const auto* prepare = record.prepare()) {
      return prepare->has(flags::kIsCommitted) && streams_detail::carries_event(*prepare)
                 ? add_event(*prepare, prepare->event_number())
                 : Result<void>{};
    }
    const auto* commit = std::get_if<log::Commit>(&record.record);
    if (commit == nullptr) {
      return {};
    }
    Result<void> outcome;
    VERGER_RETURN_IF_ERROR(
        streams_detail::visit_transaction(log, *commit, [&](const log::Prepare& event) {
          const auto number = streams_detail::number_by_commit(*commit, event);
          part.by_commit.emplace(event.position.value(), number);
          outcome = add_event(event, number);
          return outcome.has_value();
        }));
    return outcome;
  }

  Result<void> add_event(const log::Prepare& prepare, EventNumber number) {
    return part.entries.add({index.hash(prepare.stream), number, prepare.position});
  }
};

Result<ExpectedEntries> ExpectedEntries::read(ToolContext& tool, const streams::Database& database,
                                              const VerifyOptions& options, Findings& findings) {
  const auto& log = database.transaction_log();
  const auto chunks = log.chunks();
  const auto threads = std::clamp<std::size_t>(static_cast<std::size_t>(options.threads), 1,
                                               std::max<std::size_t>(chunks.size(), 1));
  std::uint64_t bytes = 0;
  for (const auto& chunk : chunks) {
    bytes += static_cast<std::uint64_t>(chunk->data_size());
  }
  ExpectedEntries result;
  for (std::size_t n = 0; n < threads; ++n) {
    result.parts_.push_back(std::make_unique<Part>(index::SortedEntries(
        tool.files, options.scratch, tool.random, kEntriesInMemory / threads)));
  }
  Progress progress(tool, "verify log", bytes);
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::size_t> next{0};
  run_parallel(
      threads, options.threads,
      [&](std::size_t mine) {
        auto& part = *result.parts_[mine];
        Reader reader{.log = log, .index = database.stream_index(), .part = part, .done = done};
        for (auto n = next++; n < chunks.size(); n = next++) {
          const auto outcome = reader.read(chunks[n]);
          if (!outcome) {
            part.complete = false;
            if (outcome.error().code == Errc::kNoSpace) {
              part.outcome = outcome;
              return;
            }
            part.findings.damage(
                chunks[n]->path(), std::nullopt,
                "looking up its events in the index ended early: " + outcome.error().message);
          }
        }
      },
      [&] { progress.update(done.load(std::memory_order_relaxed)); });
  for (auto& part : result.parts_) {
    VERGER_RETURN_IF_ERROR(part->outcome);
    findings.take(part->findings);
    result.complete_ = result.complete_ && part->complete;
  }
  return result;
}

std::uint64_t ExpectedEntries::count() const {
  std::uint64_t count = 0;
  for (const auto& part : parts_) {
    count += part->entries.count();
  }
  return count;
}

std::optional<EventNumber> ExpectedEntries::number_by_commit(LogPosition position) const {
  for (const auto& part : parts_) {
    if (const auto found = part->by_commit.find(position.value()); found != part->by_commit.end()) {
      return found->second;
    }
  }
  return std::nullopt;
}

Result<bool> ExpectedEntries::advance() {
  if (started_) {
    VERGER_TRY(parts_[next_]->more, parts_[next_]->entries.advance());
  } else {
    started_ = true;
    for (auto& part : parts_) {
      VERGER_TRY(part->more, part->entries.advance());
    }
  }
  bool found = false;
  for (std::size_t n = 0; n < parts_.size(); ++n) {
    if (parts_[n]->more &&
        (!found || parts_[next_]->entries.current() < parts_[n]->entries.current())) {
      next_ = n;
      found = true;
    }
  }
  return found;
}

}  // namespace verger::tool
