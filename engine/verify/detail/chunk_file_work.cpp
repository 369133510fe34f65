#include "engine/verify/detail/chunk_file_work.h"

#include <fmt/format.h>

namespace verger::verify::detail {

bool ChunkFileWork::step(std::uint32_t units) {
  switch (stage_) {
    case Stage::kOpen:
      open();
      break;
    case Stage::kChecksum:
      compare_checksum(units);
      break;
    case Stage::kRecords:
      read_records(units);
      break;
    case Stage::kDone:
      break;
  }
  return stage_ == Stage::kDone;
}

bool ChunkFileWork::header_fits() {
  const auto& header = *file_.header;
  if (header.start != file_.name.start) {
    findings_.damage(file_.path, 6, fmt::format("the header says chunk {}", header.start));
  }
  if (header.end < header.start) {
    findings_.damage(file_.path, 10, fmt::format("it ends with chunk {}", header.end));
    return false;
  }
  if (header.chunk_size != chunk_size_) {
    findings_.damage(file_.path, 2,
                     fmt::format("chunk size {}, but {} is that of the database", header.chunk_size,
                                 chunk_size_));
    return false;
  }
  if (file_.name.version == 0 && header.end != header.start) {
    findings_.damage(file_.path, 10, "a file of version 0 must hold a single chunk");
  }
  return true;
}

void ChunkFileWork::open() {
  if (!header_fits()) {
    return finish();
  }
  const auto& header = *file_.header;
  const bool active =
      writer_ && file_.name.start.value() == *writer_ / chunk_size_ && !header.scavenged;
  auto chunk = active ? log::Chunk::open_active(files_, file_.path,
                                                *writer_ - header.start_position().value())
                      : log::Chunk::open_completed(files_, file_.path);
  if (!chunk) {
    findings_.damage(file_.path, std::nullopt, chunk.error().message);
    return finish();
  }
  chunk_ = *std::move(chunk);
  if (active) {
    return start_records();
  }
  checksum_.emplace([chunk = chunk_](std::uint64_t offset,
                                     MutableBytes into) { return chunk->read_raw(offset, into); },
                    chunk_->file_size());
  stage_ = Stage::kChecksum;
}

void ChunkFileWork::compare_checksum(std::uint32_t units) {
  const auto compared = checksum_->step(units * kBytesPerUnit);
  bytes_ = checksum_->done();
  if (compared && !*compared) {
    return;
  }
  if (!compared) {
    findings_.damage(file_.path, file_.size - sizeof(Md5Digest),
                     compared.error().code == Errc::kCorruption
                         ? compared.error().message +
                               "; it was damaged: restore it from a backup or another node"
                         : compared.error().message);
  }
  checksum_.reset();
  start_records();
}

void ChunkFileWork::start_records() {
  auto scanner = log::ChunkScanner::open(chunk_, chunk_->start_position());
  if (!scanner) {
    findings_.damage(file_.path, std::nullopt, scanner.error().message);
    return finish();
  }
  scanner_.emplace(*std::move(scanner));
  stage_ = Stage::kRecords;
}

void ChunkFileWork::read_records(std::uint32_t units) {
  for (std::uint32_t n = 0; n < units; ++n) {
    const auto record = scanner_->next();
    if (!record) {
      findings_.damage(file_.path, expected_offset_, record.error().message);
      return finish();
    }
    if (!*record) {
      return end_of_records();
    }
    look_at(**record);
  }
}

void ChunkFileWork::look_at(const log::LogRecord& record) {
  const auto start = chunk_->start_position();
  if (record.file_offset != expected_offset_) {
    findings_.damage(file_.path, expected_offset_,
                     fmt::format("no record here; the next one is read at {}", record.file_offset));
  }
  if (record.position() < start || record.position() >= chunk_->end_position()) {
    findings_.damage(
        file_.path, record.file_offset,
        fmt::format("a record says it lies at {}, outside its chunk", record.position()));
  }
  again_.clear();
  log::append_framed(again_, record.record);
  if (!same_bytes(again_, record.framed)) {
    findings_.damage(file_.path, record.file_offset,
                     "a record is not in canonical form: replication and scavenges would "
                     "change it");
  }
  if (file_.header->scavenged) {
    places_.push_back({static_cast<std::int32_t>(record.file_offset - log::kChunkHeaderSize),
                       record.position() - start});
  }
  expected_offset_ = record.file_offset + record.framed.size();
  bytes_ += record.framed.size();
  ++records_;
}

void ChunkFileWork::end_of_records() {
  const auto end = log::kChunkHeaderSize + static_cast<std::uint64_t>(chunk_->data_size());
  if (expected_offset_ != end) {
    findings_.damage(file_.path, expected_offset_,
                     fmt::format("records end here, the data of the chunk at {}", end));
  }
  if (file_.header->scavenged) {
    compare_posmap();
  }
  finish();
}

void ChunkFileWork::compare_posmap() {
  const auto map = chunk_->posmap();
  const auto map_offset = log::kChunkHeaderSize + static_cast<std::uint64_t>(chunk_->data_size());
  if (!map) {
    findings_.damage(file_.path, map_offset, map.error().message);
    return;
  }
  if (map->size() != places_.size()) {
    findings_.damage(
        file_.path, map_offset,
        fmt::format("{} entries in the position map for {} records", map->size(), places_.size()));
    return;
  }
  const std::uint64_t entry_size = chunk_->footer()->map_12_bytes ? 12 : 8;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto& entry = (*map)[i];
    if (entry.actual != places_[i].actual || entry.local != places_[i].local) {
      findings_.damage(
          file_.path, map_offset + i * entry_size,
          fmt::format("position map entry {} says {} at {}, the record there is {} at {}", i,
                      entry.local, entry.actual, places_[i].local, places_[i].actual));
      return;
    }
  }
}

/// What was open for this file is needed no longer; there may be very many files.
void ChunkFileWork::finish() {
  scanner_.reset();
  checksum_.reset();
  chunk_.reset();
  places_ = {};
  again_ = {};
  stage_ = Stage::kDone;
}

}  // namespace verger::verify::detail
