#include "engine/tool/detail/verify_chunks.h"

#include <algorithm>
#include <atomic>

#include "engine/log/chunk.h"
#include "engine/tool/detail/parallel.h"
#include "engine/tool/progress.h"

namespace verger::tool {

namespace {

struct ChunkFile {
  Path path;
  log::ChunkFileName name;
  std::uint64_t size = 0;
  std::optional<log::ChunkHeader> header;
};

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

/// Looks at one chunk file.
class FileVerifier {
 public:
  /// `done` counts bytes of records, for progress.
  FileVerifier(FileSystem& files, const ChunkFile& file, std::int32_t chunk_size,
               std::optional<std::int64_t> writer, std::atomic<std::uint64_t>& done)
      : files_(files), file_(file), chunk_size_(chunk_size), writer_(writer), done_(done) {}

  void run() { verify(file_); }
  [[nodiscard]] const Findings& findings() const { return findings_; }
  [[nodiscard]] std::uint64_t records() const { return records_; }

 private:
  void verify(const ChunkFile& file) {
    const auto& header = *file.header;
    if (header.start != file.name.start) {
      findings_.damage(file.path, 6, fmt::format("the header says chunk {}", header.start));
    }
    if (header.end < header.start) {
      findings_.damage(file.path, 10, fmt::format("it ends with chunk {}", header.end));
      return;
    }
    if (header.chunk_size != chunk_size_) {
      findings_.damage(file.path, 2,
                       fmt::format("chunk size {}, but {} is that of the database",
                                   header.chunk_size, chunk_size_));
      return;
    }
    if (file.name.version == 0 && header.end != header.start) {
      findings_.damage(file.path, 10, "a file of version 0 must hold a single chunk");
    }
    const bool active =
        writer_ && file.name.start.value() == *writer_ / chunk_size_ && !header.scavenged;
    auto chunk = active ? log::Chunk::open_active(files_, file.path,
                                                  *writer_ - header.start_position().value())
                        : log::Chunk::open_completed(files_, file.path);
    if (!chunk) {
      findings_.damage(file.path, std::nullopt, chunk.error().message);
      return;
    }
    if (!active) {
      if (const auto sum = (*chunk)->verify_md5(); !sum) {
        findings_.damage(file.path, file.size - sizeof(Md5Digest), sum.error().message);
      }
    }
    const auto places = scan(file, *chunk);
    if (places && header.scavenged) {
      verify_posmap(file, **chunk, *places);
    }
  }

  /// Reads all records; their places as a position map would hold them.
  std::optional<std::vector<log::PosmapEntry>> scan(const ChunkFile& file,
                                                    const std::shared_ptr<log::Chunk>& chunk) {
    std::vector<log::PosmapEntry> places;
    const auto start = chunk->start_position();
    auto expected_offset = std::uint64_t{log::kChunkHeaderSize};
    auto scanner = log::ChunkScanner::open(chunk, start);
    if (!scanner) {
      findings_.damage(file.path, std::nullopt, scanner.error().message);
      return std::nullopt;
    }
    Bytes again;
    for (;;) {
      const auto record = scanner->next();
      if (!record) {
        findings_.damage(file.path, expected_offset, record.error().message);
        return std::nullopt;
      }
      if (!*record) {
        break;
      }
      const auto& found = **record;
      if (found.file_offset != expected_offset) {
        findings_.damage(
            file.path, expected_offset,
            fmt::format("no record here; the next one is read at {}", found.file_offset));
      }
      if (found.position() < start || found.position() >= chunk->end_position()) {
        findings_.damage(
            file.path, found.file_offset,
            fmt::format("a record says it lies at {}, outside its chunk", found.position()));
      }
      again.clear();
      log::append_framed(again, found.record);
      if (!same_bytes(again, found.framed)) {
        findings_.damage(file.path, found.file_offset,
                         "a record is not in canonical form: replication and scavenges would "
                         "change it");
      }
      places.push_back({static_cast<std::int32_t>(found.file_offset - log::kChunkHeaderSize),
                        found.position() - start});
      expected_offset = found.file_offset + found.framed.size();
      done_.fetch_add(found.framed.size(), std::memory_order_relaxed);
      ++records_;
    }
    const auto end = log::kChunkHeaderSize + static_cast<std::uint64_t>(chunk->data_size());
    if (expected_offset != end) {
      findings_.damage(file.path, expected_offset,
                       fmt::format("records end here, the data of the chunk at {}", end));
    }
    return places;
  }

  void verify_posmap(const ChunkFile& file, const log::Chunk& chunk,
                     const std::vector<log::PosmapEntry>& places) {
    const auto map = chunk.posmap();
    const auto map_offset = log::kChunkHeaderSize + static_cast<std::uint64_t>(chunk.data_size());
    if (!map) {
      findings_.damage(file.path, map_offset, map.error().message);
      return;
    }
    if (map->size() != places.size()) {
      findings_.damage(
          file.path, map_offset,
          fmt::format("{} entries in the position map for {} records", map->size(), places.size()));
      return;
    }
    const std::uint64_t entry_size = chunk.footer()->map_12_bytes ? 12 : 8;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const auto& entry = (*map)[i];
      if (entry.actual != places[i].actual || entry.local != places[i].local) {
        findings_.damage(
            file.path, map_offset + i * entry_size,
            fmt::format("position map entry {} says {} at {}, the record there is {} at {}", i,
                        entry.local, entry.actual, places[i].local, places[i].actual));
        return;
      }
    }
  }

  FileSystem& files_;
  const ChunkFile& file_;
  std::int32_t chunk_size_;
  std::optional<std::int64_t> writer_;
  std::atomic<std::uint64_t>& done_;
  Findings findings_;
  std::uint64_t records_ = 0;
};

class ChunkVerifier {
 public:
  ChunkVerifier(ToolContext& tool, const Path& directory, std::int32_t chunk_size, int threads,
                Findings& findings)
      : tool_(tool),
        directory_(directory),
        given_(chunk_size),
        chunk_size_(chunk_size),
        threads_(threads),
        findings_(findings) {}

  Result<ChunkTotals> run() {
    VERGER_RETURN_IF_ERROR(find_files());
    VERGER_RETURN_IF_ERROR(look_at_checkpoints());
    std::int32_t expected = 0;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const auto& file = files_[i];
      const auto start = file.name.start.value();
      const bool newer_follows =
          i + 1 < files_.size() && files_[i + 1].name.start == file.name.start;
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
        whole_.push_back(&file);
        expected = std::max(expected, file.header->end.value() + 1);
      }
      ++totals_.files;
      totals_.bytes += file.size;
    }
    if (writer_) {
      const auto last = *writer_ / chunk_size_;
      const bool on_boundary = *writer_ % chunk_size_ == 0;
      report_missing(expected, static_cast<std::int32_t>(on_boundary ? last : last + 1));
    }
    verify_whole();
    return totals_;
  }

 private:
  Result<void> find_files() {
    VERGER_TRY(const auto entries, tool_.files.list(directory_));
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
      auto header = read_header(tool_.files, file.path);
      if (header) {
        file.header = *header;
        if (chunk_size_ == 0) {
          chunk_size_ = header->chunk_size;
        }
      } else {
        findings_.damage(file.path, 0, header.error().message);
      }
      files_.push_back(std::move(file));
    }
    if (chunk_size_ == 0) {
      chunk_size_ = log::kDefaultChunkSize;
    }
    return check_given();
  }

  /// Where all chunks have another size than the one that was given, that one is wrong, not they.
  Result<void> check_given() const {
    const auto of =
        std::ranges::find_if(files_, [](const ChunkFile& file) { return file.header.has_value(); });
    if (given_ == 0 || of == files_.end() ||
        std::ranges::any_of(files_,
                            [&](const ChunkFile& file) {
                              return file.header &&
                                     file.header->chunk_size != of->header->chunk_size;
                            }) ||
        of->header->chunk_size == given_) {
      return {};
    }
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: was written with chunk size {}, and {} was given; leave "
                             "--chunk-size out, or give the right one",
                             of->path.string(), of->header->chunk_size, given_)};
  }

  Result<void> look_at_checkpoints() {
    const auto writer_path = directory_ / "writer.chk";
    VERGER_TRY(writer_, read_checkpoint(tool_.files, writer_path, findings_));
    if (!writer_ && !files_.empty()) {
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
      VERGER_TRY(const auto value, read_checkpoint(tool_.files, path, findings_));
      if (value && writer_ && *value > *writer_) {
        findings_.damage(path, 0, fmt::format("{} lies behind writer.chk ({})", *value, *writer_));
      }
      if (value && *value < (name == std::string_view("epoch.chk") ? -1 : 0)) {
        findings_.damage(path, 0, fmt::format("{} is no log position", *value));
      }
    }
    VERGER_TRY(const auto proposal,
               read_checkpoint(tool_.files, directory_ / "proposal.chk", findings_));
    if (proposal && (*proposal < -1 || *proposal > std::numeric_limits<std::int32_t>::max())) {
      findings_.damage(directory_ / "proposal.chk", 0,
                       fmt::format("{} is no epoch number", *proposal));
    }
    VERGER_TRY(const auto truncate,
               read_checkpoint(tool_.files, directory_ / "truncate.chk", findings_));
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

  /// The files that are live, from header to footer.
  void verify_whole() {
    std::atomic<std::uint64_t> done{0};
    std::vector<std::unique_ptr<FileVerifier>> verifiers;
    verifiers.reserve(whole_.size());
    for (const auto* file : whole_) {
      verifiers.push_back(
          std::make_unique<FileVerifier>(tool_.files, *file, chunk_size_, writer_, done));
    }
    Progress progress(tool_, "verify chunks", totals_.bytes);
    run_parallel(
        verifiers.size(), threads_, [&](std::size_t n) { verifiers[n]->run(); },
        [&] { progress.update(done.load(std::memory_order_relaxed)); });
    for (const auto& verifier : verifiers) {
      findings_.take(verifier->findings());
      totals_.records += verifier->records();
    }
  }

  void report_missing(std::int32_t from, std::int32_t to) {
    for (auto number = from; number < to; ++number) {
      findings_.damage_of_kind("missing chunk",
                               directory_ / log::chunk_file_name(ChunkNumber(number), 0),
                               std::nullopt, fmt::format("chunk {} is missing", number));
    }
  }

  void after_the_end(const ChunkFile& file) {
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

  ToolContext& tool_;
  const Path& directory_;
  std::int32_t given_;  ///< 0: the first chunk tells
  std::int32_t chunk_size_;
  int threads_;
  Findings& findings_;
  std::vector<ChunkFile> files_;
  std::vector<const ChunkFile*> whole_;
  std::optional<std::int64_t> writer_;
  ChunkTotals totals_;
};

}  // namespace

Result<ChunkTotals> verify_chunks(ToolContext& tool, const Path& directory, std::int32_t chunk_size,
                                  int threads, Findings& findings) {
  return ChunkVerifier(tool, directory, chunk_size, threads, findings).run();
}

}  // namespace verger::tool
