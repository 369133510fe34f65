#include "engine/backup/generation_files.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <mutex>

namespace verger::backup {
namespace detail {

/// The first error of a store that could not be asked.
class StoreProblem {
 public:
  void note(const Error& error) {
    const std::scoped_lock lock(mutex_);
    if (is_store_away(error.code) && !first_) {
      first_ = error;
    }
  }
  [[nodiscard]] std::optional<Error> first() const {
    const std::scoped_lock lock(mutex_);
    return first_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<Error> first_;
};

}  // namespace detail
namespace {

class GenerationFile final : public File {
 public:
  GenerationFile(std::unique_ptr<BlobReader> content, const BackedUpFile& file, Path path,
                 std::shared_ptr<detail::StoreProblem> problem)
      : content_(std::move(content)),
        problem_(std::move(problem)),
        stored_(file.size),
        size_(file.restored_size),
        path_(std::move(path)) {}

  [[nodiscard]] const Path& path() const override { return path_; }

  Result<std::size_t> read_at(std::uint64_t offset, MutableBytes into) const override {
    if (offset >= size_) {
      return std::size_t{0};
    }
    const auto part = into.first(std::min<std::uint64_t>(into.size(), size_ - offset));
    const auto from_content =
        offset < stored_ ? std::min<std::uint64_t>(part.size(), stored_ - offset) : 0;
    if (from_content > 0) {
      if (auto read = content_->read_exact(offset, part.first(from_content)); !read) {
        problem_->note(read.error());
        return read.error();
      }
    }
    std::ranges::fill(part.subspan(from_content), std::byte{0});
    return part.size();
  }
  Result<void> write_at(std::uint64_t /*offset*/, ByteView /*bytes*/) override { return refused(); }
  [[nodiscard]] Result<std::uint64_t> size() const override { return size_; }
  Result<void> resize(std::uint64_t /*size*/) override { return refused(); }
  Result<void> sync() override { return refused(); }

 private:
  [[nodiscard]] Error refused() const {
    return {Errc::kRefused, fmt::format("{}: a backup cannot be written to", path_.string())};
  }
  std::unique_ptr<BlobReader> content_;
  std::shared_ptr<detail::StoreProblem> problem_;
  std::uint64_t stored_;
  std::uint64_t size_;
  Path path_;
};

}  // namespace

GenerationFiles::GenerationFiles(FileSystem& below, BlobStore& store, Manifest manifest)
    : below_(below),
      store_(store),
      problem_(std::make_shared<detail::StoreProblem>()),
      manifest_(std::move(manifest)) {
  // Beside the manifest's own name, where nothing else lies.
  root_ = (Path(store_.name()) / "generations" / (manifest_.id + ".files")).lexically_normal();
}
GenerationFiles::~GenerationFiles() = default;

std::optional<Error> GenerationFiles::store_problem() const { return problem_->first(); }

std::optional<std::string> GenerationFiles::inside(const Path& path) const {
  const auto relative = path.lexically_normal().lexically_relative(root_);
  if (relative.empty() || *relative.begin() == "..") {
    return std::nullopt;
  }
  auto text = relative == "." ? std::string() : relative.generic_string();
  if (text.ends_with('/')) {
    text.pop_back();
  }
  return text;
}

Result<void> GenerationFiles::check_outside(const Path& path) const {
  if (inside(path)) {
    return Error{Errc::kRefused, fmt::format("{}: a backup cannot be changed", path.string())};
  }
  return {};
}

Result<std::unique_ptr<File>> GenerationFiles::open(const Path& path, OpenMode mode) {
  const auto name = inside(path);
  if (!name) {
    return below_.open(path, mode);
  }
  if (mode != OpenMode::kRead) {
    VERGER_RETURN_IF_ERROR(check_outside(path));
  }
  const auto* const file = manifest_.find(*name);
  if (file == nullptr) {
    return Error{Errc::kNotFound, fmt::format("{}: is not in this backup", path.string())};
  }
  auto content = store_.open_blob(file->sha256);
  if (!content) {
    problem_->note(content.error());
    return content.error();
  }
  return std::make_unique<GenerationFile>(*std::move(content), *file, path, problem_);
}

Result<bool> GenerationFiles::exists(const Path& path) {
  const auto name = inside(path);
  if (!name) {
    return below_.exists(path);
  }
  return name->empty() || std::ranges::any_of(manifest_.files, [&](const BackedUpFile& file) {
           return file.path == *name || file.path.starts_with(*name + "/");
         });
}

Result<std::uint64_t> GenerationFiles::file_size(const Path& path) {
  const auto name = inside(path);
  if (!name) {
    return below_.file_size(path);
  }
  const auto* const file = manifest_.find(*name);
  if (file == nullptr) {
    return Error{Errc::kNotFound, fmt::format("{}: is not in this backup", path.string())};
  }
  return file->restored_size;
}

Result<std::vector<DirectoryEntry>> GenerationFiles::list(const Path& directory) {
  const auto name = inside(directory);
  if (!name) {
    return below_.list(directory);
  }
  const auto prefix = name->empty() ? std::string() : *name + "/";
  std::map<std::string, DirectoryEntry> entries;
  for (const auto& file : manifest_.files) {
    if (!file.path.starts_with(prefix)) {
      continue;
    }
    const auto rest = file.path.substr(prefix.size());
    const auto slash = rest.find('/');
    const auto entry = rest.substr(0, slash);
    const bool is_directory = slash != std::string::npos;
    entries[entry] = {entry, is_directory, is_directory ? 0 : file.restored_size};
  }
  if (entries.empty() && !name->empty()) {
    return Error{Errc::kNotFound, fmt::format("{}: is not in this backup", directory.string())};
  }
  std::vector<DirectoryEntry> result;
  result.reserve(entries.size());
  for (auto& [key, entry] : entries) {
    result.push_back(std::move(entry));
  }
  return result;
}

Result<void> GenerationFiles::rename(const Path& from, const Path& to) {
  VERGER_RETURN_IF_ERROR(check_outside(from));
  VERGER_RETURN_IF_ERROR(check_outside(to));
  return below_.rename(from, to);
}

Result<void> GenerationFiles::remove(const Path& path) {
  VERGER_RETURN_IF_ERROR(check_outside(path));
  return below_.remove(path);
}

Result<void> GenerationFiles::make_directories(const Path& path) {
  VERGER_RETURN_IF_ERROR(check_outside(path));
  return below_.make_directories(path);
}

Result<void> GenerationFiles::sync_directory(const Path& directory) {
  VERGER_RETURN_IF_ERROR(check_outside(directory));
  return below_.sync_directory(directory);
}

Result<void> GenerationFiles::set_read_only(const Path& path, bool read_only) {
  VERGER_RETURN_IF_ERROR(check_outside(path));
  return below_.set_read_only(path, read_only);
}

Result<DiskSpace> GenerationFiles::space(const Path& path) {
  VERGER_RETURN_IF_ERROR(check_outside(path));
  return below_.space(path);
}

Result<std::unique_ptr<FileLock>> GenerationFiles::lock(const Path& path) {
  VERGER_RETURN_IF_ERROR(check_outside(path));
  return below_.lock(path);
}

}  // namespace verger::backup
