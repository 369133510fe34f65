#include "engine/verify/detail/chunk_file_work.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace verger::verify::detail {
namespace {

constexpr std::size_t kRecordsAtOnce = 64;

}  // namespace

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

bool ChunkFileWork::open() {
  if (!header_fits()) {
    return false;
  }
  const auto& header = *file_.header;
  const bool active =
      writer_ && file_.name.start.value() == *writer_ / chunk_size_ && !header.scavenged;
  auto chunk = active ? log::Chunk::open_active(files_, file_.path,
                                                *writer_ - header.start_position().value())
                      : log::Chunk::open_completed(files_, file_.path);
  if (!chunk) {
    findings_.damage(file_.path, std::nullopt, chunk.error().message);
    return false;
  }
  chunk_ = *std::move(chunk);
  data_end_ = log::kChunkHeaderSize + static_cast<std::uint64_t>(chunk_->data_size());
  // What lies behind the records of an active chunk means nothing yet.
  hashed_end_ = active ? data_end_ : chunk_->file_size() - sizeof(Md5Digest);
  auto scanner = log::ChunkScanner::open(chunk_, chunk_->start_position());
  if (scanner) {
    scanner_.emplace(*std::move(scanner));
  } else {
    findings_.damage(file_.path, std::nullopt, scanner.error().message);
  }
  return true;
}

ByteView ChunkFileWork::read(std::size_t size) {
  if (!std::exchange(opened_, true) && !open()) {
    chunk_.reset();
  }
  if (chunk_ == nullptr || unread_ || at_ == hashed_end_) {
    return {};
  }
  auto piece = read_on(size);
  if (!piece) {
    unread_ = std::move(piece).error();
    return {};
  }
  at_ += piece->size();
  return *piece;
}

/// The records through the scanner, everything else as it is.
Result<ByteView> ChunkFileWork::read_on(std::size_t size) {
  const bool in_data = at_ >= log::kChunkHeaderSize && at_ < data_end_;
  if (in_data && scanner_) {
    return scanner_->read_ahead(size);
  }
  const auto end = at_ < log::kChunkHeaderSize ? log::kChunkHeaderSize
                   : in_data                   ? data_end_
                                               : hashed_end_;
  piece_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size, end - at_)));
  VERGER_RETURN_IF_ERROR(chunk_->read_raw(at_, piece_));
  return ByteView(piece_);
}

void ChunkFileWork::records_end_early(const Error& error) {
  findings_.damage(file_.path, expected_offset_, error.message);
  scanner_.reset();
}

void ChunkFileWork::look(ExpectedEntries::Part* part) {
  while (scanner_) {
    const auto records = scanner_->next_read(kRecordsAtOnce);
    if (!records) {
      return records_end_early(records.error());
    }
    if (records->empty()) {
      break;
    }
    for (const auto& record : *records) {
      look_at(record);
    }
    if (part != nullptr) {
      part->add(*records);
    }
  }
  if (scanner_ && at_ >= data_end_) {
    end_of_records(part);
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
  if (!log::is_canonical(record.record, record.framed)) {
    findings_.damage(file_.path, record.file_offset,
                     "a record is not in canonical form: replication and scavenges would "
                     "change it");
  }
  if (file_.header->scavenged) {
    places_.push_back({static_cast<std::int32_t>(record.file_offset - log::kChunkHeaderSize),
                       record.position() - start});
  }
  expected_offset_ = record.file_offset + record.framed.size();
  ++records_;
}

void ChunkFileWork::end_of_records(ExpectedEntries::Part* part) {
  // What is left is no whole record.
  if (const auto none = scanner_->next(); !none) {
    return records_end_early(none.error());
  }
  if (expected_offset_ != data_end_) {
    findings_.damage(file_.path, expected_offset_,
                     fmt::format("records end here, the data of the chunk at {}", data_end_));
  }
  if (file_.header->scavenged) {
    compare_posmap();
  }
  if (part != nullptr) {
    part->note_read(*chunk_);
  }
  scanner_.reset();
}

void ChunkFileWork::compare_posmap() {
  const auto map = chunk_->posmap();
  const auto map_offset = data_end_;
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
void ChunkFileWork::end(const Md5Digest& digest) {
  Findings checksum;
  const auto offset = file_.size - sizeof(Md5Digest);
  if (chunk_ == nullptr) {
    return;
  }
  if (chunk_->footer() && unread_) {
    checksum.damage(file_.path, offset, unread_->message);
  } else if (chunk_->footer() && digest != chunk_->footer()->md5) {
    checksum.damage(file_.path, offset,
                    fmt::format("the bytes have the MD5 {}, the file says {}; it was damaged: "
                                "restore it from a backup or another node",
                                to_hex(digest), to_hex(chunk_->footer()->md5)));
  }
  if (scanner_ && unread_) {
    records_end_early(*unread_);
  }
  checksum.take(findings_);
  findings_ = std::move(checksum);
  scanner_.reset();
  chunk_.reset();
  places_ = {};
  piece_ = {};
}

}  // namespace verger::verify::detail
