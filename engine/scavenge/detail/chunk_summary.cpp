#include "engine/scavenge/detail/chunk_summary.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/scavenge/context.h"
#include "engine/streams/metadata.h"
#include "engine/streams/stream_names.h"

namespace verger::scavenge::detail {
namespace {

/// Names remembered while a chunk is read: those of later chunks are new to it again.
constexpr std::size_t kNamesOfChunk = std::size_t{1} << 17U;
/// A summary ends at about so many bytes.
constexpr std::size_t kLargestSummary = std::size_t{2} << 20U;
constexpr std::size_t kRecordsReadAtOnce = 64;

Error refused_record(std::string_view what, const log::Prepare& prepare) {
  return {Errc::kUnsupported,
          fmt::format("{} in stream \"{}\" at log position {}: the server cannot scavenge this "
                      "database either; records and index are untouched",
                      what, prepare.stream, prepare.position)};
}

PendingName store_name(std::string_view name, std::string& text) {
  const PendingName stored{static_cast<std::uint32_t>(text.size()),
                           static_cast<std::uint32_t>(name.size())};
  text += name;
  return stored;
}

}  // namespace

ChunkReader::ChunkReader(std::shared_ptr<const log::Chunk> chunk, log::ChunkScanner scanner,
                         Range range, index::HashFunction hash,
                         std::optional<log::ChunkChecksum> checksum)
    : chunk_(std::move(chunk)),
      scanner_(std::move(scanner)),
      range_(range),
      hash_(hash),
      checksum_(std::move(checksum)),
      seen_(kNamesOfChunk) {}

Result<std::unique_ptr<ChunkReader>> ChunkReader::open(std::shared_ptr<const log::Chunk> chunk,
                                                       Range range, index::HashFunction hash,
                                                       std::optional<log::ChunkChecksum> checksum) {
  VERGER_TRY(auto scanner, log::ChunkScanner::open(chunk, range.start));
  return std::unique_ptr<ChunkReader>(
      new ChunkReader(std::move(chunk), std::move(scanner), range, hash, std::move(checksum)));
}

ChunkSummary ChunkReader::read(std::uint32_t records) {
  ChunkSummary summary;
  if (auto read = read_into(summary, records); !read) {
    summary.error = std::move(read).error();
  }
  return summary;
}

Result<void> ChunkReader::read_into(ChunkSummary& summary, std::uint32_t records) {
  std::array<SeenNames::Key, kRecordsReadAtOnce> keys;
  while (summary.count < records && summary.bytes() < kLargestSummary) {
    const auto wanted = std::min<std::size_t>(kRecordsReadAtOnce, records - summary.count);
    VERGER_TRY(const auto batch, scanner_->next_batch(wanted));
    if (batch.empty()) {
      summary.ended = true;
      return {};
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (const auto* prepare = batch[i].prepare()) {
        keys[i] = SeenNames::key_of(prepare->stream);
        seen_.expect(keys[i]);
      }
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto& record = batch[i];
      const auto position = record.position();
      if (position > range_.point) {
        return Error{Errc::kCorruption,
                     fmt::format("there is a record at log position {} behind the scavenge point "
                                 "at {} in its chunk: the point has to be the last record of a "
                                 "completed chunk",
                                 position, range_.point)};
      }
      if (checksum_) {
        VERGER_RETURN_IF_ERROR(checksum_->add(record));
      }
      if (const auto* prepare = record.prepare()) {
        VERGER_RETURN_IF_ERROR(take(*prepare, keys[i], summary));
      }
      ++summary.count;
      summary.point_reached = position == range_.point;
      // Inside a merged chunk the record after a gap belongs to a later logical chunk; like the
      // server's, this scan takes it in both.
      if (summary.point_reached || record.next >= range_.end) {
        summary.ended = true;
        return {};
      }
    }
  }
  return {};
}

void ChunkReader::free_memory() {
  scanner_.reset();
  seen_.clear();
}

Result<void> ChunkReader::finish_checksum() {
  if (!checksum_) {
    return {};
  }
  VERGER_RETURN_IF_ERROR(checksum_->finish());
  checksum_.reset();
  return {};
}

Result<void> ChunkReader::take(const log::Prepare& prepare, const SeenNames::Key& key,
                               ChunkSummary& summary) {
  if (!summary.range) {
    summary.range = TimeRange{prepare.timestamp, prepare.timestamp};
  }
  summary.range->min = std::min(summary.range->min, prepare.timestamp);
  summary.range->max = std::max(summary.range->max, prepare.timestamp);
  if (prepare.event_number().value() < 0 && prepare.has(log::prepare_flags::kIsCommitted) &&
      prepare.position < range_.point &&
      summary.without_number.size() < RunContext::kMostWithoutNumber) {
    summary.without_number.push_back(
        {prepare.position, store_name(prepare.stream, summary.text), prepare.event_number()});
  }
  if (prepare.has(log::prepare_flags::kStreamDelete)) {
    ++summary.tombstones;
    return take_tombstone(prepare, key, summary);
  }
  if (streams::is_metastream(prepare.stream)) {
    ++summary.metadatas;
    return take_metadata(prepare, key, summary);
  }
  ++summary.originals;
  note(prepare.stream, key, summary);
  return {};
}

void ChunkReader::note(std::string_view stream, const SeenNames::Key& key, ChunkSummary& summary) {
  if (!seen_.insert(key)) {
    summary.names.push_back({store_name(stream, summary.text), key});
  }
}

Result<void> ChunkReader::take_metadata(const log::Prepare& prepare, const SeenNames::Key& key,
                                        ChunkSummary& summary) {
  if (prepare.event_number().value() < 0) {
    return refused_record("a metadata record of an explicit transaction", prepare);
  }
  const auto original = streams::original_of(prepare.stream);
  note(original, SeenNames::key_of(original), summary);
  note(prepare.stream, key, summary);
  const auto metadata = streams::parse_metadata(prepare.data, prepare.version);
  PendingRecord record;
  record.metastream = store_name(prepare.stream, summary.text);
  record.metastream_hash = hash_(prepare.stream);
  record.original_hash = hash_(original);
  record.number = prepare.event_number();
  record.position = prepare.position;
  record.names_before = static_cast<std::uint32_t>(summary.names.size());
  record.max_age_seconds = metadata.max_age_seconds.value_or(-1);
  record.max_count = metadata.max_count.value_or(-1);
  record.truncate_before = metadata.truncate_before.value_or(-1);
  summary.records.push_back(record);
  return {};
}

Result<void> ChunkReader::take_tombstone(const log::Prepare& prepare, const SeenNames::Key& key,
                                         ChunkSummary& summary) {
  if (streams::is_metastream(prepare.stream)) {
    return refused_record("a tombstone of a metastream", prepare);
  }
  if (prepare.event_number().value() < 0) {
    return refused_record("a tombstone without an event number", prepare);
  }
  const auto metastream = streams::metastream_of(prepare.stream);
  note(prepare.stream, key, summary);
  note(metastream, SeenNames::key_of(metastream), summary);
  PendingRecord record;
  record.tombstone = true;
  record.metastream = store_name(metastream, summary.text);
  record.metastream_hash = hash_(metastream);
  record.original_hash = hash_(prepare.stream);
  record.number = prepare.event_number();
  record.position = prepare.position;
  record.names_before = static_cast<std::uint32_t>(summary.names.size());
  summary.records.push_back(record);
  return {};
}

}  // namespace verger::scavenge::detail
