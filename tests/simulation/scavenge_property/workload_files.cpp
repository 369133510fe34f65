// What a workload does to the files of its database: forms of older servers, and damage that old
// scavenges left.
#include "engine/index/index_map.h"
#include "tests/simulation/scavenge_property/workload.h"
#include "tests/support/results.h"

namespace verger::test {

void Workload::age_files() {
  builder_->close();
  const auto writer =
      load_le<std::int64_t>(value(read_file(files_, directory_ / "writer.chk")).data());
  for (const auto& entry : value(files_.list(directory_))) {
    const auto name = log::parse_chunk_file_name(entry.name);
    if (name && (name->start.value() + 1) * std::int64_t{options_.chunk_size} <= writer &&
        one_in(2)) {
      age_chunk(directory_ / entry.name);
    }
  }
  for (const auto& line : value(index::load_index_map(files_, directory_ / "index")).tables) {
    if (one_in(2)) {
      age_table(directory_ / "index" / line.file);
    }
  }
  builder_->open();
}

void Workload::age_chunk(const Path& path) {
  const auto chunk = value(log::Chunk::open_completed(files_, path));
  auto header = chunk->header();
  auto footer = *chunk->footer();
  const bool unaligned = one_in(2);
  header.min_compatible_version = unaligned ? 2 : 3;
  header.version = 0;
  const auto map = value(chunk->posmap());
  footer.map_12_bytes = one_in(2);
  footer.map_size = static_cast<std::int32_t>(map.size() * (footer.map_12_bytes ? 12 : 8));
  Bytes bytes;
  append_bytes(bytes, log::encode_chunk_header(header));
  Bytes data(static_cast<std::size_t>(chunk->data_size()));
  value(chunk->read_raw(log::kChunkHeaderSize, data));
  append_bytes(bytes, data);
  for (const auto& entry : map) {
    append_le(bytes, entry.actual);
    if (footer.map_12_bytes) {
      append_le(bytes, entry.local);
    } else {
      append_le(bytes, static_cast<std::int32_t>(entry.local));
    }
  }
  if (!unaligned) {
    bytes.resize((bytes.size() + log::kChunkFooterSize + 4095) / 4096 * 4096 -
                 log::kChunkFooterSize);
  }
  append_bytes(bytes, log::encode_chunk_footer(footer));
  const auto sum = md5(ByteView(bytes).first(bytes.size() - sizeof(Md5Digest)));
  std::ranges::copy(sum, bytes.end() - sizeof(Md5Digest));
  value(files_.set_read_only(path, false));
  value(write_file_durably(files_, path, bytes));
}

void Workload::age_table(const Path& path) {
  std::vector<index::IndexEntry> entries;
  {
    index::PTableScanner scanner(value(index::PTable::open(files_, path, 16)));
    while (const auto* entry = value(scanner.next())) {
      entries.push_back(*entry);
    }
  }
  // Version 2 has 32 bits for numbers.
  const bool narrow = one_in(2) && std::ranges::all_of(entries, [](const auto& entry) {
                        return entry.number.value() <= std::numeric_limits<std::int32_t>::max();
                      });
  Bytes bytes(128);
  bytes[0] = std::byte{1};
  bytes[1] = narrow ? std::byte{2} : std::byte{3};
  for (const auto& entry : entries) {
    if (narrow) {
      append_le(bytes, static_cast<std::int32_t>(entry.number.value()));
    } else {
      append_le(bytes, entry.number.value());
    }
    append_le(bytes, entry.hash.value());
    append_le(bytes, entry.position.value());
  }
  append_bytes(bytes, md5(bytes));
  value(write_file_durably(files_, path, bytes));
}

void Workload::empty_a_chunk(const streams::ScavengePoint& point) {
  std::vector<std::shared_ptr<const log::Chunk>> candidates;
  for (const auto& chunk : builder_->database().transaction_log().chunks()) {
    bool needed = chunk->end_position() > point.position;
    auto scanner = value(log::ChunkScanner::open(chunk, chunk->start_position()));
    while (const auto record = value(scanner.next())) {
      const auto* prepare = record->prepare();
      // Epochs are a chain; the last point is looked for.
      needed = needed || std::holds_alternative<log::SystemRecord>(record->record) ||
               (prepare != nullptr && prepare->stream == "$scavengePoints");
    }
    if (!needed) {
      candidates.push_back(chunk);
    }
  }
  if (candidates.empty()) {
    return;
  }
  const auto chosen = candidates[random_.below(candidates.size())];
  auto header = chosen->header();
  header.scavenged = true;
  header.min_compatible_version = 3;
  header.version = 4;
  const auto old = chosen->path();
  const auto path = directory_ / log::chunk_file_name(header.start, chosen->version() + 1);
  candidates.clear();
  builder_->close();
  auto writer = value(log::ChunkWriter::create(files_, directory_, "emptied.tmp", header));
  value(files_.rename(value(writer.finish()).path, path));
  value(files_.set_read_only(old, false));
  value(files_.remove(old));
  value(files_.sync_directory(directory_));
  emptied_ = true;
  builder_->open();
}

}  // namespace verger::test
