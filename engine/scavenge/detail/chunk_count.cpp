#include "engine/scavenge/detail/chunk_count.h"

#include <algorithm>
#include <array>

#include "engine/scavenge/detail/top_streams.h"

namespace verger::scavenge::detail {
namespace {

constexpr std::size_t kRecordsCountedAtOnce = 64;
/// What was counted ends at about so many bytes.
constexpr std::size_t kLargestCounted = std::size_t{1} << 20U;

}  // namespace

ChunkCounter::ChunkCounter(std::shared_ptr<const log::Chunk> chunk, log::ChunkScanner scanner,
                           const RunRules& rules, LimitsReader limits)
    : chunk_(std::move(chunk)),
      scanner_(std::move(scanner)),
      rules_(rules),
      limits_(std::move(limits)) {}

Result<std::unique_ptr<ChunkCounter>> ChunkCounter::open(std::shared_ptr<const log::Chunk> chunk,
                                                         const RunRules& rules,
                                                         LimitsReader limits) {
  VERGER_TRY(auto scanner, log::ChunkScanner::open(chunk, chunk->start_position()));
  return std::unique_ptr<ChunkCounter>(
      new ChunkCounter(std::move(chunk), std::move(scanner), rules, std::move(limits)));
}

CountedRecords ChunkCounter::read(std::uint32_t records) {
  CountedRecords counted;
  if (auto read = read_into(counted, records); !read) {
    counted.error = std::move(read).error();
  }
  return counted;
}

Result<void> ChunkCounter::read_into(CountedRecords& counted, std::uint32_t records) {
  std::array<LimitsReader::Key, kRecordsCountedAtOnce> keys;
  while (records > 0 && counted.bytes() < kLargestCounted) {
    VERGER_TRY(const auto batch, scanner_.next_batch(std::min<std::size_t>(keys.size(), records)));
    if (batch.empty()) {
      counted.ended = true;
      return {};
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (const auto* prepare = batch[i].prepare()) {
        keys[i] = limits_.expect(prepare->stream);
      }
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      VERGER_RETURN_IF_ERROR(take(batch[i], keys[i], counted));
    }
    records -= static_cast<std::uint32_t>(batch.size());
  }
  return {};
}

Result<void> ChunkCounter::take(const log::LogRecord& record, const LimitsReader::Key& key,
                                CountedRecords& counted) {
  const auto* prepare = record.prepare();
  if (prepare == nullptr) {
    counted.kept += {1, record.framed.size()};
    return {};
  }
  VERGER_TRY(const auto* limits, limits_.find(prepare->stream, key));
  if (prepare->event_number().value() < 0 &&
      asks_for_number(*prepare, key.metastream, *limits, rules_)) {
    // The run ends here, too.
    return without_number(prepare->stream, prepare->position, prepare->event_number())
        .within(chunk_->path().string());
  }
  if (keeps_prepare(*prepare, key.metastream, *limits, rules_)) {
    counted.kept += {1, record.framed.size()};
    return {};
  }
  counted.removed.push_back({.name_hash = TopStreams::hash_of(prepare->stream),
                             .number = prepare->event_number(),
                             .name_offset = static_cast<std::uint32_t>(counted.text.size()),
                             .name_size = static_cast<std::uint32_t>(prepare->stream.size()),
                             .bytes = static_cast<std::uint32_t>(record.framed.size()),
                             .rule = removal_rule(*prepare, key.metastream, *limits)});
  counted.text += prepare->stream;
  return {};
}

}  // namespace verger::scavenge::detail
