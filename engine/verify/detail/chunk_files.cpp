#include "engine/verify/detail/chunk_files.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace verger::verify::detail {
namespace {

/// The 8 bytes of a checkpoint file; nullopt when it is missing or was reported.
Result<std::optional<std::int64_t>> read_checkpoint(FileSystem& files, const Path& path,
                                                    Findings& findings) {
  VERGER_TRY(const bool there, files.exists(path));
  if (!there) {
    return std::nullopt;
  }
  VERGER_TRY(const auto bytes, read_file(files, path));
  if (bytes.size() != sizeof(std::int64_t)) {
    findings.damage(path, 0, fmt::format("a checkpoint has 8 bytes, this file {}", bytes.size()));
    return std::nullopt;
  }
  return load_le<std::int64_t>(bytes.data());
}

Result<log::ChunkHeader> read_header(FileSystem& files, const Path& path) {
  VERGER_TRY(const auto file, files.open(path, OpenMode::kRead));
  Bytes bytes(log::kChunkHeaderSize);
  VERGER_RETURN_IF_ERROR(file->read_exact(0, bytes));
  return log::decode_chunk_header(bytes);
}

}  // namespace

Result<void> ChunkFiles::find() {
  VERGER_RETURN_IF_ERROR(list_files());
  VERGER_RETURN_IF_ERROR(look_at_checkpoints());
  std::int64_t expected = 0;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const auto& file = all_[i];
    const std::int64_t start = file.name.start.value();
    const bool newer_follows = i + 1 < all_.size() && all_[i + 1].name.start == file.name.start;
    if (newer_follows || start < expected) {
      findings_.note(file.path, "an older version; the next opening for writing removes it");
      continue;
    }
    if (writer_ && start > *writer_ / chunk_size_) {
      after_the_end(file);
      continue;
    }
    report_missing(expected, start);
    expected = start + 1;
    if (file.header) {
      live_.push_back(&file);
      expected = std::max(expected, std::int64_t{file.header->end.value()} + 1);
    }
    ++count_;
    bytes_ += file.size;
  }
  if (writer_) {
    const auto last = *writer_ / chunk_size_;
    const bool on_boundary = *writer_ % chunk_size_ == 0;
    report_missing(expected, on_boundary ? last : last + 1);
  }
  return {};
}

Result<void> ChunkFiles::list_files() {
  VERGER_TRY(const auto entries, files_.list(directory_));
  for (const auto& entry : entries) {
    const auto name = log::parse_chunk_file_name(entry.name);
    if (!name || entry.is_directory) {
      if (entry.name.ends_with(".tmp")) {
        findings_.note(directory_ / entry.name,
                       "a temporary file; the next opening for writing removes it");
      }
      continue;
    }
    ChunkFile file{directory_ / entry.name, *name, entry.size, std::nullopt};
    auto header = read_header(files_, file.path);
    if (header) {
      file.header = *header;
      if (chunk_size_ == 0) {
        chunk_size_ = header->chunk_size;
      }
    } else {
      findings_.damage(file.path, 0, header.error().message);
    }
    all_.push_back(std::move(file));
  }
  if (chunk_size_ == 0) {
    chunk_size_ = log::kDefaultChunkSize;
  }
  return check_given();
}

/// Where all chunks have another size than the one that was given, that one is wrong, not they.
Result<void> ChunkFiles::check_given() const {
  const auto of =
      std::ranges::find_if(all_, [](const ChunkFile& file) { return file.header.has_value(); });
  if (given_ == 0 || of == all_.end() ||
      std::ranges::any_of(all_,
                          [&](const ChunkFile& file) {
                            return file.header && file.header->chunk_size != of->header->chunk_size;
                          }) ||
      of->header->chunk_size == given_) {
    return {};
  }
  return Error{Errc::kInvalidArgument,
               fmt::format("{}: was written with chunk size {}, and {} was given; leave "
                           "the chunk size out, or give the right one",
                           of->path.string(), of->header->chunk_size, given_)};
}

Result<void> ChunkFiles::look_at_checkpoints() {
  const auto writer_path = directory_ / "writer.chk";
  VERGER_TRY(writer_, read_checkpoint(files_, writer_path, findings_));
  if (!writer_ && !all_.empty()) {
    findings_.damage(writer_path, std::nullopt,
                     "missing or unreadable: the end of the log is not known, the last chunk "
                     "cannot be checked");
  }
  if (writer_ && *writer_ < 0) {
    findings_.damage(writer_path, 0, fmt::format("{} is no log position", *writer_));
    writer_.reset();
  }
  for (const auto* name : {"chaser.chk", "epoch.chk"}) {
    const auto path = directory_ / name;
    VERGER_TRY(const auto value, read_checkpoint(files_, path, findings_));
    if (value && writer_ && *value > *writer_) {
      findings_.damage(path, 0, fmt::format("{} lies behind writer.chk ({})", *value, *writer_));
    }
    if (value && *value < (name == std::string_view("epoch.chk") ? -1 : 0)) {
      findings_.damage(path, 0, fmt::format("{} is no log position", *value));
    }
  }
  VERGER_TRY(const auto proposal, read_checkpoint(files_, directory_ / "proposal.chk", findings_));
  if (proposal && (*proposal < -1 || *proposal > std::numeric_limits<std::int32_t>::max())) {
    findings_.damage(directory_ / "proposal.chk", 0,
                     fmt::format("{} is no epoch number", *proposal));
  }
  VERGER_TRY(const auto truncate, read_checkpoint(files_, directory_ / "truncate.chk", findings_));
  if (truncate && (*truncate < -1 || (writer_ && *truncate > *writer_))) {
    findings_.damage(
        directory_ / "truncate.chk", 0,
        fmt::format("the log cannot be cut to {}; write -1 (eight bytes ff) there", *truncate));
  } else if (truncate && *truncate != -1) {
    findings_.note(directory_ / "truncate.chk",
                   fmt::format("the next opening for writing cuts the log to {}", *truncate));
  }
  return {};
}

void ChunkFiles::report_missing(std::int64_t from, std::int64_t to) {
  constexpr std::int64_t kEach = 1000;
  if (to - from > kEach) {
    // More likely a checkpoint that lies than files that are gone.
    findings_.damage(
        directory_, std::nullopt,
        fmt::format("chunks {} to {} are missing; is writer.chk ({}) that of these files?", from,
                    to - 1, writer_.value_or(-1)));
    return;
  }
  for (auto number = from; number < to; ++number) {
    findings_.damage_of_kind(
        "missing chunk",
        directory_ / log::chunk_file_name(ChunkNumber(static_cast<std::int32_t>(number)), 0),
        std::nullopt, fmt::format("chunk {} is missing", number));
  }
}

void ChunkFiles::after_the_end(const ChunkFile& file) {
  if (file.name.start.value() == *writer_ / chunk_size_ + 1 && file.name.version == 0) {
    findings_.note(file.path,
                   "left from starting a new chunk; the next opening for writing removes it when "
                   "it is empty");
  } else {
    findings_.damage(file.path, std::nullopt,
                     fmt::format("lies behind writer.chk ({}); is that checkpoint older than the "
                                 "chunks?",
                                 *writer_));
  }
}

}  // namespace verger::verify::detail
