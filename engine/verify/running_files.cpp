#include "engine/verify/running_files.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "engine/log/chunk.h"

namespace verger::verify {
namespace {

constexpr int kTries = 20;
constexpr std::size_t kPiece = std::size_t{1} << 20U;
constexpr const char* kExistenceDirectory = "stream-existence";
/// A filter covers what its checkpoint says, so that one is read before it.
constexpr const char* kExistenceCheckpoint = "streamExistenceFilter.chk";

class ContentFile final : public File {
 public:
  ContentFile(Path path, std::shared_ptr<const Bytes> content)
      : path_(std::move(path)), content_(std::move(content)) {}
  [[nodiscard]] const Path& path() const override { return path_; }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    if (offset >= content_->size()) {
      return std::size_t{0};
    }
    const auto count = std::min<std::uint64_t>(into.size(), content_->size() - offset);
    std::memcpy(into.data(), content_->data() + offset, count);
    return static_cast<std::size_t>(count);
  }
  Result<void> write_at(std::uint64_t /*offset*/, ByteView /*bytes*/) override { return refused(); }
  [[nodiscard]] Result<std::uint64_t> size() const override { return content_->size(); }
  Result<void> resize(std::uint64_t /*size*/) override { return refused(); }
  Result<void> sync() override { return refused(); }

 private:
  [[nodiscard]] Error refused() const {
    return {Errc::kRefused, fmt::format("{}: is only read", path_.string())};
  }
  Path path_;
  std::shared_ptr<const Bytes> content_;
};

/// An open file, for each who opens it.
class SharedFile final : public File {
 public:
  explicit SharedFile(std::shared_ptr<File> file) : file_(std::move(file)) {}
  [[nodiscard]] const Path& path() const override { return file_->path(); }
  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    return file_->read_at(offset, into);
  }
  Result<void> write_at(std::uint64_t /*offset*/, ByteView /*bytes*/) override { return refused(); }
  [[nodiscard]] Result<std::uint64_t> size() const override { return file_->size(); }
  Result<void> resize(std::uint64_t /*size*/) override { return refused(); }
  Result<void> sync() override { return refused(); }

 private:
  [[nodiscard]] Error refused() const {
    return {Errc::kRefused, fmt::format("{}: is only read", file_->path().string())};
  }
  std::shared_ptr<File> file_;
};

Result<Bytes> read_part(const File& file, std::uint64_t offset, std::uint64_t size) {
  Bytes out(size);
  VERGER_TRY(const auto read, file.read_at(offset, out));
  out.resize(read);
  return out;
}

}  // namespace

Result<std::unique_ptr<RunningFiles>> RunningFiles::open(FileSystem& below, const Path& directory,
                                                         const Path& index_directory,
                                                         const Path& scratch, Random& random) {
  const auto normal = [](const Path& path) {
    auto out = path.lexically_normal();
    return out.has_filename() ? out : out.parent_path();
  };
  std::unique_ptr<RunningFiles> out(
      new RunningFiles(below, normal(directory), normal(index_directory), scratch));
  VERGER_RETURN_IF_ERROR(out->keep_index());
  for (const char* name :
       {"epoch.chk", "proposal.chk", "truncate.chk", "chaser.chk", "writer.chk"}) {
    VERGER_RETURN_IF_ERROR(out->keep_content(out->directory_ / name));
  }
  VERGER_RETURN_IF_ERROR(out->keep_log(random));
  return out;
}

RunningFiles::~RunningFiles() {
  if (!copy_.empty()) {
    // What cannot be removed only costs space in a directory for temporary files.
    static_cast<void>(below_.remove(copy_).has_value());
  }
}

Result<void> RunningFiles::keep_index() {
  VERGER_TRY(const bool there, below_.exists(index_directory_));
  if (!there) {
    return {};
  }
  for (int attempt = 0; attempt < kTries; ++attempt) {
    VERGER_TRY(const bool same, keep_tables());
    if (same) {
      break;
    }
    if (attempt + 1 == kTries) {
      return Error{Errc::kUnavailable,
                   fmt::format("{}: its tables change faster than they can be opened",
                               index_directory_.string())};
    }
    kept_.clear();
  }
  const auto existence = index_directory_ / kExistenceDirectory;
  VERGER_TRY(const bool filtered, below_.exists(existence));
  if (!filtered) {
    return {};
  }
  VERGER_RETURN_IF_ERROR(keep_content(existence / kExistenceCheckpoint));
  VERGER_TRY(const auto entries, below_.list(existence));
  for (const auto& entry : entries) {
    if (!entry.is_directory && entry.name != kExistenceCheckpoint) {
      VERGER_RETURN_IF_ERROR(keep_open(existence / entry.name));
    }
  }
  return {};
}

/// False: the index changed meanwhile.
Result<bool> RunningFiles::keep_tables() {
  const auto map = index_directory_ / "indexmap";
  VERGER_RETURN_IF_ERROR(keep_content(map));
  VERGER_TRY(const auto entries, below_.list(index_directory_));
  for (const auto& entry : entries) {
    const auto path = index_directory_ / entry.name;
    if (!entry.is_directory && path != map) {
      VERGER_RETURN_IF_ERROR(keep_open(path));
    }
  }
  const auto kept = kept_.find(map);
  VERGER_TRY(const bool there, below_.exists(map));
  if (!there || kept == kept_.end()) {
    return !there && kept == kept_.end();
  }
  const auto again = read_file(below_, map);
  return again && *again == *kept->second.content;
}

Result<void> RunningFiles::keep_content(const Path& path) {
  auto content = read_file(below_, path);
  if (!content) {
    return content.error().code == Errc::kNotFound ? Result<void>() : content.error();
  }
  const auto size = content->size();
  kept_[path] = {.content = std::make_shared<const Bytes>(*std::move(content)), .size = size};
  return {};
}

/// What is gone by now was a file of before.
Result<void> RunningFiles::keep_open(const Path& path) {
  auto file = below_.open(path, OpenMode::kRead);
  if (!file) {
    return file.error().code == Errc::kNotFound ? Result<void>() : file.error();
  }
  VERGER_TRY(const auto size, (*file)->size());
  kept_[path] = {.file = std::shared_ptr<File>(*std::move(file)), .size = size};
  return {};
}

std::int64_t RunningFiles::checkpoint(const char* name, std::int64_t missing) const {
  const auto* kept = find(directory_ / name);
  return kept == nullptr || !kept->content || kept->content->size() != sizeof(std::int64_t)
             ? missing
             : load_le<std::int64_t>(kept->content->data());
}

Result<void> RunningFiles::keep_log(Random& random) {
  const auto writer = checkpoint("writer.chk", -1);
  VERGER_TRY(const auto entries, below_.list(directory_));
  std::optional<std::int64_t> first;
  for (const auto& entry : entries) {
    const auto path = directory_ / entry.name;
    if (entry.is_directory || kept_.contains(path)) {
      continue;
    }
    const auto name = log::parse_chunk_file_name(entry.name);
    if (name) {
      first = std::min<std::int64_t>(first.value_or(name->start.value()), name->start.value());
    }
    if (!name) {
      if (!entry.name.ends_with(".chk") && !entry.name.ends_with(".tmp")) {
        kept_[path] = {.size = entry.size};
      }
      continue;
    }
    const auto file = below_.open(path, OpenMode::kRead);
    Bytes bytes(log::kChunkHeaderSize);
    if (!file || !(*file)->read_exact(0, bytes)) {
      kept_[path] = {.size = entry.size};  // what reads it will say why
      continue;
    }
    const auto header = log::decode_chunk_header(bytes);
    if (!header && header.error().code == Errc::kUnsupported) {
      return header.error().within(path.string());  // it is not damaged, only not to be read
    }
    if (!header || header->chunk_size <= 0 || writer < 0) {
      kept_[path] = {.size = entry.size};
      continue;
    }
    const auto number = writer / header->chunk_size;
    if (name->start.value() > number) {
      continue;  // begun after that moment
    }
    if (name->start.value() == number && !header->scavenged) {
      VERGER_RETURN_IF_ERROR(copy_active_chunk(
          path, writer - number * header->chunk_size + std::int64_t{log::kChunkHeaderSize},
          random));
      continue;
    }
    kept_[path] = {.size = entry.size};
  }
  if (first.value_or(0) > 0) {
    // A server that had lost them would not run.
    return Error{
        Errc::kUnsupported,
        fmt::format("{}: the log begins with chunk {}: older ones are in an archive, which "
                    "is not looked at",
                    directory_.string(), *first)};
  }
  return {};
}

Result<void> RunningFiles::copy_active_chunk(const Path& path, std::int64_t bytes, Random& random) {
  VERGER_RETURN_IF_ERROR(below_.make_directories(scratch_));
  copied_ = path;
  copied_to_ = static_cast<std::uint64_t>(bytes);
  copy_ = scratch_ / ("verger-verify-" + random.uuid().to_string() + ".chunk");
  VERGER_TRY(const auto source, below_.open(path, OpenMode::kRead));
  VERGER_TRY(const auto size, source->size());
  VERGER_TRY(auto copy, below_.open(copy_, OpenMode::kCreateNew));
  for (std::uint64_t done = 0; done < copied_to_;) {
    VERGER_TRY(const auto part,
               read_part(*source, done, std::min<std::uint64_t>(kPiece, copied_to_ - done)));
    if (part.empty()) {
      break;  // what reads the copy will say that it ends early
    }
    VERGER_RETURN_IF_ERROR(copy->write_at(done, part));
    done += part.size();
  }
  VERGER_RETURN_IF_ERROR(copy->resize(size));
  kept_[path] = {.file = std::shared_ptr<File>(std::move(copy)), .size = size};
  return {};
}

Result<void> RunningFiles::chunks_in_place() {
  bool replaced = gone_;
  for (const auto& [path, kept] : kept_) {
    const bool in_place = kept.content == nullptr && kept.file == nullptr;
    if (in_place && log::parse_chunk_file_name(path.filename().string())) {
      VERGER_TRY(const bool there, below_.exists(path));
      replaced = replaced || !there;
    }
  }
  if (replaced) {
    return Error{Errc::kConflict, "chunk files were replaced meanwhile"};
  }
  return {};
}

Result<void> RunningFiles::still_whole() {
  VERGER_RETURN_IF_ERROR(chunks_in_place());
  const auto cut = [this](std::string_view how) {
    return Error{Errc::kConflict,
                 fmt::format("{}: the log was cut meanwhile ({})", directory_.string(), how)};
  };
  const auto number_in = [this](const char* name, std::int64_t missing) -> Result<std::int64_t> {
    const auto bytes = read_file(below_, directory_ / name);
    if (!bytes) {
      return bytes.error().code == Errc::kNotFound ? Result<std::int64_t>(missing) : bytes.error();
    }
    return bytes->size() == sizeof(std::int64_t) ? load_le<std::int64_t>(bytes->data()) : missing;
  };
  const auto writer = checkpoint("writer.chk", -1);
  VERGER_TRY(const auto writer_now, number_in("writer.chk", -1));
  VERGER_TRY(const auto truncate, number_in("truncate.chk", -1));
  if (writer_now < writer) {
    return cut("writer.chk is lower");
  }
  if (truncate != -1 && truncate < writer && truncate != checkpoint("truncate.chk", -1)) {
    return cut("truncate.chk");
  }
  // A server that cut its log and received another since has other bytes at that end.
  if (!copied_.empty()) {
    const auto now = below_.open(copied_, OpenMode::kRead);
    if (!now && now.error().code == Errc::kNotFound) {
      return Error{Errc::kConflict, fmt::format("{}: was replaced meanwhile", copied_.string())};
    }
    if (!now) {
      return now.error();
    }
    const auto from = copied_to_ > kPiece ? copied_to_ - kPiece : 0;
    VERGER_TRY(const auto before, read_part(*kept_.at(copied_).file, from, copied_to_ - from));
    VERGER_TRY(const auto after, read_part(**now, from, copied_to_ - from));
    if (before != after) {
      return cut("its end has other records");
    }
  }
  return {};
}

std::uint64_t RunningFiles::held_bytes() {
  std::uint64_t out = 0;
  for (const auto& [path, kept] : kept_) {
    if (kept.file != nullptr && path != copied_) {
      const auto there = below_.exists(path);
      out += there && !*there ? kept.size : 0;
    }
  }
  return out;
}

std::uint64_t RunningFiles::table_bytes() const {
  std::uint64_t out = 0;
  for (const auto& [path, kept] : kept_) {
    out += kept.file != nullptr && path.parent_path() == index_directory_ &&
                   path.extension() != ".bloomfilter"
               ? kept.size
               : 0;
  }
  return out;
}

bool RunningFiles::is_kept_place(const Path& path) const {
  const auto parent = path.parent_path();
  return parent == directory_ || parent == index_directory_ ||
         parent == index_directory_ / kExistenceDirectory;
}

const RunningFiles::Kept* RunningFiles::find(const Path& path) const {
  const auto found = kept_.find(path.lexically_normal());
  return found == kept_.end() ? nullptr : &found->second;
}

Result<void> RunningFiles::check_outside(const Path& path) const {
  const auto relative = path.lexically_normal().lexically_relative(directory_);
  const auto in_index = path.lexically_normal().lexically_relative(index_directory_);
  const auto inside = [](const Path& part) { return !part.empty() && *part.begin() != ".."; };
  if (inside(relative) || inside(in_index)) {
    return Error{Errc::kRefused,
                 fmt::format("{}: the files of a running server are only read", path.string())};
  }
  return {};
}

Result<std::unique_ptr<File>> RunningFiles::open(const Path& path, OpenMode mode) {
  if (mode != OpenMode::kRead) {
    VERGER_RETURN_IF_ERROR(check_outside(path));
  }
  const auto* kept = find(path);
  if (kept == nullptr) {
    if (is_kept_place(path.lexically_normal())) {
      return Error{Errc::kNotFound, fmt::format("{}: was not there", path.string())};
    }
    return below_.open(path, mode);
  }
  if (kept->content) {
    return std::make_unique<ContentFile>(path, kept->content);
  }
  if (kept->file) {
    return std::make_unique<SharedFile>(kept->file);
  }
  auto file = below_.open(path, mode);
  if (!file && file.error().code == Errc::kNotFound) {
    gone_ = true;
  }
  return file;
}

Result<bool> RunningFiles::exists(const Path& path) {
  const auto normal = path.lexically_normal();
  if (find(normal) != nullptr) {
    return true;
  }
  VERGER_TRY(const bool there, below_.exists(path));
  if (!there || !is_kept_place(normal)) {
    return there;
  }
  // A directory, or what came later.
  return below_.list(path).has_value();
}

Result<std::uint64_t> RunningFiles::file_size(const Path& path) {
  if (const auto* kept = find(path)) {
    return kept->size;
  }
  if (is_kept_place(path.lexically_normal())) {
    return Error{Errc::kNotFound, fmt::format("{}: was not there", path.string())};
  }
  return below_.file_size(path);
}

Result<std::vector<DirectoryEntry>> RunningFiles::list(const Path& directory) {
  auto normal = directory.lexically_normal();
  normal = normal.has_filename() ? normal : normal.parent_path();
  VERGER_TRY(auto entries, below_.list(directory));
  if (!is_kept_place(normal / "file")) {
    return entries;
  }
  std::erase_if(entries, [](const DirectoryEntry& each) { return !each.is_directory; });
  for (const auto& [path, kept] : kept_) {
    if (path.parent_path() == normal) {
      entries.push_back({path.filename().string(), false, kept.size});
    }
  }
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

Result<void> RunningFiles::rename(const Path& from, const Path& to) {
  VERGER_RETURN_IF_ERROR(check_outside(from));
  VERGER_RETURN_IF_ERROR(check_outside(to));
  return below_.rename(from, to);
}
Result<void> RunningFiles::remove(const Path& path) {
  VERGER_RETURN_IF_ERROR(check_outside(path));
  return below_.remove(path);
}
Result<void> RunningFiles::make_directories(const Path& path) {
  VERGER_RETURN_IF_ERROR(check_outside(path));
  return below_.make_directories(path);
}
Result<void> RunningFiles::sync_directory(const Path& directory) {
  VERGER_RETURN_IF_ERROR(check_outside(directory));
  return below_.sync_directory(directory);
}
Result<void> RunningFiles::set_read_only(const Path& path, bool read_only) {
  VERGER_RETURN_IF_ERROR(check_outside(path));
  return below_.set_read_only(path, read_only);
}
Result<DiskSpace> RunningFiles::space(const Path& path) { return below_.space(path); }
Result<std::unique_ptr<FileLock>> RunningFiles::lock(const Path& path) {
  VERGER_RETURN_IF_ERROR(check_outside(path));
  return below_.lock(path);
}

}  // namespace verger::verify
