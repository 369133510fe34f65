#include "engine/backup/directory_store.h"

#include <fmt/format.h>

#include "engine/backup/detail/page_cache.h"
#include "engine/base/directories.h"
#include "engine/base/failpoint.h"

namespace verger::backup {
namespace {

constexpr std::string_view kPartSuffix = ".part";

class FileBlobReader final : public BlobReader {
 public:
  FileBlobReader(std::unique_ptr<File> file, std::uint64_t size)
      : file_(std::move(file)), size_(size) {}
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  Result<void> read_exact(std::uint64_t offset, MutableBytes into) const override {
    return file_->read_exact(offset, into);
  }

 private:
  std::unique_ptr<File> file_;
  std::uint64_t size_;
};

class FileBlobWriter final : public BlobWriter {
 public:
  FileBlobWriter(DirectoryStore& store, FileSystem& files, std::unique_ptr<File> file)
      : store_(store), files_(files), file_(std::move(file)) {}
  ~FileBlobWriter() override {
    if (file_) {
      // A part that stays is removed with the leftovers.
      static_cast<void>(files_.remove(file_->path()).has_value());
    }
  }
  FileBlobWriter(const FileBlobWriter&) = delete;
  FileBlobWriter& operator=(const FileBlobWriter&) = delete;

  Result<void> append(ByteView bytes) override {
    VERGER_RETURN_IF_ERROR(file_->write_at(size_, bytes));
    size_ += bytes.size();
    return {};
  }

  Result<void> commit(const Sha256Digest& digest) override {
    // Over what is there already, too: if that was damaged, it is sound now.
    VERGER_RETURN_IF_ERROR(file_->sync());
    detail::drop_from_page_cache(files_, file_->path());
    const Path path = store_.blob_path(digest);
    VERGER_RETURN_IF_ERROR(make_directories_durably(files_, path.parent_path()));
    VERGER_FAILPOINT("store.blob.before-rename");
    VERGER_RETURN_IF_ERROR(files_.rename(file_->path(), path));
    file_.reset();
    VERGER_RETURN_IF_ERROR(files_.sync_directory(path.parent_path()));
    VERGER_FAILPOINT("store.blob.after-rename");
    return {};
  }

 private:
  DirectoryStore& store_;
  FileSystem& files_;
  std::unique_ptr<File> file_;
  std::uint64_t size_ = 0;
};

/// Removing what is not there is no error, of stores.
Result<void> remove_if_there(FileSystem& files, const Path& path) {
  auto removed = files.remove(path);
  if (!removed && removed.error().code == Errc::kNotFound) {
    return {};
  }
  VERGER_RETURN_IF_ERROR(std::move(removed));
  return files.sync_directory(path.parent_path());
}

/// What a directory holds; nothing where it is not there.
Result<std::vector<DirectoryEntry>> entries_of(FileSystem& files, const Path& directory) {
  auto entries = files.list(directory);
  if (!entries && entries.error().code == Errc::kNotFound) {
    return std::vector<DirectoryEntry>();
  }
  return entries;
}

}  // namespace

Result<Sha256Digest> digest_from_hex(std::string_view text) {
  Sha256Digest digest{};
  const auto value_of = [](char digit) {
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                          : -1;
  };
  if (text.size() != 2 * digest.size()) {
    return Error{Errc::kCorruption,
                 fmt::format("a SHA-256 has 64 hexadecimal digits, this text {}", text.size())};
  }
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = value_of(text[2 * i]);
    const int low = value_of(text[2 * i + 1]);
    if (high < 0 || low < 0) {
      return Error{Errc::kCorruption, "not the lower-case hexadecimal digits of a SHA-256"};
    }
    digest[i] = static_cast<std::byte>(high * 16 + low);
  }
  return digest;
}

DirectoryStore::DirectoryStore(FileSystem& files, Path directory, Random& random)
    : files_(files), directory_(std::move(directory)), random_(random) {}
DirectoryStore::~DirectoryStore() = default;

Path DirectoryStore::blob_path(const Sha256Digest& digest) const {
  const auto hex = to_hex(digest);
  return directory_ / "blobs" / hex.substr(0, 2) / hex;
}

Result<std::unique_ptr<BlobWriter>> DirectoryStore::create_blob() {
  const Path parts = directory_ / "tmp";
  VERGER_RETURN_IF_ERROR(make_directories_durably(files_, parts));
  const Path path = parts / (random_.uuid().to_string() + std::string(kPartSuffix));
  VERGER_TRY(auto file, files_.open(path, OpenMode::kCreateNew));
  return std::make_unique<FileBlobWriter>(*this, files_, std::move(file));
}

Result<std::optional<std::uint64_t>> DirectoryStore::blob_size(const Sha256Digest& digest) {
  const auto size = files_.file_size(blob_path(digest));
  if (!size && size.error().code == Errc::kNotFound) {
    return std::optional<std::uint64_t>();
  }
  if (!size) {
    return size.error();
  }
  return std::optional(*size);
}

Result<std::unique_ptr<BlobReader>> DirectoryStore::open_blob(const Sha256Digest& digest) {
  VERGER_TRY(auto file, files_.open(blob_path(digest), OpenMode::kRead));
  VERGER_TRY(const auto size, file->size());
  return std::make_unique<FileBlobReader>(std::move(file), size);
}

Result<std::vector<StoredBlob>> DirectoryStore::list_blobs() {
  std::vector<StoredBlob> found;
  const Path blobs = directory_ / "blobs";
  VERGER_TRY(const auto folders, entries_of(files_, blobs));
  for (const auto& folder : folders) {
    if (!folder.is_directory) {
      continue;
    }
    VERGER_TRY(const auto entries, entries_of(files_, blobs / folder.name));
    for (const auto& entry : entries) {
      if (const auto digest = digest_from_hex(entry.name); digest && !entry.is_directory) {
        found.push_back({*digest, entry.size});
      }
    }
  }
  return found;
}

Result<void> DirectoryStore::remove_blob(const Sha256Digest& name) {
  return remove_if_there(files_, blob_path(name));
}

Result<std::uint64_t> DirectoryStore::remove_leftovers() {
  VERGER_TRY(const auto entries, entries_of(files_, directory_ / "tmp"));
  std::uint64_t bytes = 0;
  for (const auto& entry : entries) {
    if (!entry.is_directory && entry.name.ends_with(kPartSuffix)) {
      VERGER_RETURN_IF_ERROR(remove_if_there(files_, directory_ / "tmp" / entry.name));
      bytes += entry.size;
    }
  }
  return bytes;
}

Result<void> DirectoryStore::put(std::string_view document, ByteView content) {
  const Path path = directory_ / document;
  VERGER_RETURN_IF_ERROR(make_directories_durably(files_, path.parent_path()));
  return write_file_durably(files_, path, content);
}

Result<Bytes> DirectoryStore::get(std::string_view document) {
  constexpr std::uint64_t kLargest = 1ULL << 30U;
  return read_file(files_, directory_ / document, kLargest);
}

Result<std::vector<std::string>> DirectoryStore::list(std::string_view folder) {
  VERGER_TRY(const auto entries, entries_of(files_, directory_ / folder));
  std::vector<std::string> names;
  for (const auto& entry : entries) {
    if (!entry.is_directory && !entry.name.ends_with(".tmp")) {
      names.push_back(entry.name);
    }
  }
  return names;
}

Result<void> DirectoryStore::remove(std::string_view document) {
  return remove_if_there(files_, directory_ / document);
}

}  // namespace verger::backup
