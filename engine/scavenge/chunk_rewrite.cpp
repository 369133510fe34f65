#include "engine/scavenge/chunk_rewrite.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/streams/stream_names.h"

namespace verger::scavenge {
namespace {

constexpr std::size_t kRecordsRewrittenAtOnce = 64;

}  // namespace

Result<std::unique_ptr<SharedLimits>> SharedLimits::load(
    ScavengeState& state, const std::function<Result<void>()>& pause) {
  std::unique_ptr<SharedLimits> limits(new SharedLimits(state));
  VERGER_TRY(limits->table_, detail::LimitsTable::load(state, pause));
  if (limits->table_ != nullptr) {
    VERGER_RETURN_IF_ERROR(state.release_cache());  // from now on it is hardly needed
  }
  return limits;
}

Result<StreamLimits> SharedLimits::find(std::string_view stream) {
  const std::scoped_lock lock(mutex_);
  VERGER_TRY(const auto limits, state_->limits_of(stream));
  return limits.value_or(StreamLimits{});
}

LimitsReader::LimitsReader(SharedLimits& shared, std::size_t cache_entries)
    : shared_(&shared), cache_(shared.table_ == nullptr ? cache_entries : 0) {}

LimitsReader::Key LimitsReader::expect(std::string_view stream) const {
  const auto* table = shared_->table_.get();
  Key key{.metastream = streams::is_metastream(stream),
          .in_table = table != nullptr && !shared_->state_->is_collision(stream),
          .hash = {}};
  if (key.in_table) {
    key.hash = shared_->state_->hash(stream);
    table->expect(key.hash);
  }
  return key;
}

Result<const StreamLimits*> LimitsReader::find(std::string_view stream, const Key& key) {
  if (key.in_table) {
    if (!shared_->table_->find(key.hash, key.metastream, found_)) {
      found_ = {};
    }
    return &found_;
  }
  if (const auto* known = cache_.find(stream)) {
    return known;
  }
  VERGER_TRY(const auto limits, shared_->find(stream));
  return &cache_.put(stream, limits);
}

log::ChunkHeader scavenged_header(const log::TransactionLog& log, ChunkNumber start,
                                  ChunkNumber end, const Uuid& chunk_id) {
  log::ChunkHeader header;
  header.chunk_size = log.chunk_size();
  header.start = start;
  header.end = end;
  header.scavenged = true;
  header.chunk_id = chunk_id;
  return header;
}

Error without_number(std::string_view stream, LogPosition position, EventNumber number) {
  return {
      Errc::kUnsupported,
      fmt::format("a committed record with the event number {} in stream \"{}\" at log position "
                  "{}: the server cannot scavenge this database either; its chunk and the index "
                  "are untouched",
                  number, stream, position)};
}

ChunkRewrite::ChunkRewrite(std::shared_ptr<const log::Chunk> chunk, log::ChunkScanner scanner,
                           log::ChunkWriter writer, const RunRules& rules, Log& out)
    : source_(std::move(chunk)),
      scanner_(std::move(scanner)),
      writer_(std::move(writer)),
      rules_(rules),
      out_(&out) {}

Result<std::unique_ptr<ChunkRewrite>> ChunkRewrite::start(
    FileSystem& files, const log::TransactionLog& log, std::shared_ptr<const log::Chunk> chunk,
    const Names& names, const RunRules& rules, Log& out, std::shared_ptr<Md5Thread> hasher) {
  VERGER_TRY(auto scanner, log::ChunkScanner::open(chunk, chunk->start_position()));
  const auto header = scavenged_header(log, chunk->start(), chunk->end(), names.chunk_id);
  VERGER_TRY(auto writer, log::ChunkWriter::create(files, log.directory(), names.temporary, header,
                                                   std::move(hasher), /*writes_behind=*/true));
  return std::unique_ptr<ChunkRewrite>(
      new ChunkRewrite(std::move(chunk), std::move(scanner), std::move(writer), rules, out));
}

Result<bool> ChunkRewrite::step(std::uint32_t records, LimitsReader& limits) {
  std::array<LimitsReader::Key, kRecordsRewrittenAtOnce> keys;
  std::size_t bytes = 0;
  for (std::uint32_t n = 0; n < records && bytes < kMostCopiedAtOnce;) {
    VERGER_TRY(const auto batch,
               scanner_.next_batch(std::min<std::size_t>(keys.size(), records - n)));
    if (batch.empty()) {
      if (checksum_) {
        VERGER_RETURN_IF_ERROR(checksum_->finish());
      }
      return true;
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (const auto* prepare = batch[i].prepare()) {
        keys[i] = limits.expect(prepare->stream);
      }
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      VERGER_RETURN_IF_ERROR(take(batch[i], keys[i], limits));
      bytes += batch[i].framed.size();
      ++n;
    }
  }
  return false;
}

Result<void> ChunkRewrite::finish() {
  VERGER_TRY(finished_, writer_.finish());
  return {};
}

Result<void> ChunkRewrite::take(const log::LogRecord& record, const LimitsReader::Key& key,
                                LimitsReader& limits) {
  if (checksum_) {
    VERGER_RETURN_IF_ERROR(checksum_->add(record));
  }
  bool keep = true;
  if (const auto* prepare = record.prepare()) {
    VERGER_TRY(const auto* stream, limits.find(prepare->stream, key));
    if (prepare->event_number().value() < 0 &&
        asks_for_number(*prepare, key.metastream, *stream, rules_)) {
      return without_number(prepare->stream, prepare->position, prepare->event_number());
    }
    keep = keeps_prepare(*prepare, key.metastream, *stream, rules_);
    if (!keep && rules_.unsafe_ignore_hard_delete && stream->tombstoned) {
      out_->info(fmt::format(
          "SCAVENGING: removing a record of the deleted stream \"{}\" at position {}: hard "
          "deletes are ignored",
          prepare->stream, prepare->position));
    }
  }
  if (keep) {
    VERGER_RETURN_IF_ERROR(writer_.append(record.position(), record.framed));
    ++kept_;
  } else {
    ++discarded_;
  }
  return {};
}

}  // namespace verger::scavenge
