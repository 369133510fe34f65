#include "engine/base/detail/sqlite_vfs.h"

#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <new>

#include "engine/base/random.h"

namespace verger::sqlite::detail {
namespace {

Path parent_of(const Path& path) {
  const Path parent = path.parent_path();
  return parent.empty() ? Path(".") : parent;
}

int note(const Error& error, int code) {
  last_disk_error() = error;
  return error.code == Errc::kNoSpace ? SQLITE_FULL : code;
}

/// What SQLite holds of an open file, behind the method table it looks for first.
struct OpenFile {
  sqlite3_file base;
  FileSystem* files;
  std::unique_ptr<File> file;
  std::unique_ptr<FileLock> lock;
  int lock_level;
  /// Until the first sync: the file's name is to be made durable with its content.
  bool name_unsynced;
  bool remove_on_close;
};

OpenFile& self(sqlite3_file* file) { return *reinterpret_cast<OpenFile*>(file); }

FileSystem& files_of(sqlite3_vfs* vfs) { return static_cast<Vfs*>(vfs->pAppData)->files(); }

int file_close(sqlite3_file* base) noexcept {
  OpenFile& file = self(base);
  int code = SQLITE_OK;
  if (file.remove_on_close) {
    if (const auto removed = file.files->remove(file.file->path()); !removed) {
      code = note(removed.error(), SQLITE_IOERR_DELETE);
    }
  }
  file.~OpenFile();
  return code;
}

int file_read(sqlite3_file* base, void* into, int size, sqlite3_int64 offset) noexcept {
  const MutableBytes bytes(static_cast<std::byte*>(into), static_cast<std::size_t>(size));
  const auto got = self(base).file->read_at(static_cast<std::uint64_t>(offset), bytes);
  if (!got) {
    return note(got.error(), SQLITE_IOERR_READ);
  }
  if (*got < bytes.size()) {
    std::memset(bytes.data() + *got, 0, bytes.size() - *got);  // SQLite relies on it
    return SQLITE_IOERR_SHORT_READ;
  }
  return SQLITE_OK;
}

int file_write(sqlite3_file* base, const void* from, int size, sqlite3_int64 offset) noexcept {
  const ByteView bytes(static_cast<const std::byte*>(from), static_cast<std::size_t>(size));
  const auto written = self(base).file->write_at(static_cast<std::uint64_t>(offset), bytes);
  return written ? SQLITE_OK : note(written.error(), SQLITE_IOERR_WRITE);
}

int file_truncate(sqlite3_file* base, sqlite3_int64 size) noexcept {
  const auto resized = self(base).file->resize(static_cast<std::uint64_t>(size));
  return resized ? SQLITE_OK : note(resized.error(), SQLITE_IOERR_TRUNCATE);
}

int file_sync(sqlite3_file* base, int /*flags*/) noexcept {
  OpenFile& file = self(base);
  if (const auto synced = file.file->sync(); !synced) {
    return note(synced.error(), SQLITE_IOERR_FSYNC);
  }
  if (file.name_unsynced) {
    const auto synced = file.files->sync_directory(parent_of(file.file->path()));
    if (!synced) {
      return note(synced.error(), SQLITE_IOERR_DIR_FSYNC);
    }
    file.name_unsynced = false;
  }
  return SQLITE_OK;
}

int file_size(sqlite3_file* base, sqlite3_int64* size) noexcept {
  const auto found = self(base).file->size();
  if (!found) {
    return note(found.error(), SQLITE_IOERR_FSTAT);
  }
  *size = static_cast<sqlite3_int64>(*found);
  return SQLITE_OK;
}

int file_lock(sqlite3_file* base, int level) noexcept {
  OpenFile& file = self(base);
  if (!file.lock) {
    auto lock = file.files->lock(file.file->path());
    if (!lock) {
      return note(lock.error(),
                  lock.error().code == Errc::kRefused ? SQLITE_BUSY : SQLITE_IOERR_LOCK);
    }
    file.lock = *std::move(lock);
  }
  file.lock_level = level;
  return SQLITE_OK;
}

int file_unlock(sqlite3_file* base, int level) noexcept {
  OpenFile& file = self(base);
  if (level == SQLITE_LOCK_NONE) {
    file.lock.reset();
  }
  file.lock_level = level;
  return SQLITE_OK;
}

int file_check_reserved_lock(sqlite3_file* /*file*/, int* result) noexcept {
  *result = 0;  // who could have it, if not we
  return SQLITE_OK;
}

int file_control(sqlite3_file* /*file*/, int /*operation*/, void* /*argument*/) noexcept {
  return SQLITE_NOTFOUND;
}

// Both as SQLite's own VFS for Linux has them by default: a write changes no byte beside it.
int file_sector_size(sqlite3_file* /*file*/) noexcept { return 4096; }
int file_characteristics(sqlite3_file* /*file*/) noexcept {
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

constexpr sqlite3_io_methods make_methods() {
  sqlite3_io_methods methods{};
  methods.iVersion = 1;
  methods.xClose = file_close;
  methods.xRead = file_read;
  methods.xWrite = file_write;
  methods.xTruncate = file_truncate;
  methods.xSync = file_sync;
  methods.xFileSize = file_size;
  methods.xLock = file_lock;
  methods.xUnlock = file_unlock;
  methods.xCheckReservedLock = file_check_reserved_lock;
  methods.xFileControl = file_control;
  methods.xSectorSize = file_sector_size;
  methods.xDeviceCharacteristics = file_characteristics;
  return methods;
}
constexpr sqlite3_io_methods kMethods = make_methods();

int vfs_open(sqlite3_vfs* base, const char* name, sqlite3_file* into, int flags,
             int* out_flags) noexcept {
  auto& vfs = *static_cast<Vfs*>(base->pAppData);
  into->pMethods = nullptr;  // no xClose after a failed xOpen
  FileSystem& files = name == nullptr ? vfs.scratch() : vfs.files();
  const Path path = name == nullptr ? Path(vfs.scratch_name()) : Path(name);
  const auto existed = files.exists(path);
  if (!existed) {
    return note(existed.error(), SQLITE_CANTOPEN);
  }
  auto mode = OpenMode::kRead;
  if ((flags & SQLITE_OPEN_READWRITE) != 0) {
    mode = (flags & SQLITE_OPEN_CREATE) == 0      ? OpenMode::kReadWrite
           : (flags & SQLITE_OPEN_EXCLUSIVE) != 0 ? OpenMode::kCreateNew
                                                  : OpenMode::kCreate;
  }
  auto file = files.open(path, mode);
  if (!file) {
    return note(file.error(), SQLITE_CANTOPEN);
  }
  const bool remove = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0;
  new (into) OpenFile{{&kMethods},          &files, *std::move(file), nullptr, SQLITE_LOCK_NONE,
                      !*existed && !remove, remove};
  if (out_flags != nullptr) {
    *out_flags = flags;
  }
  return SQLITE_OK;
}

int vfs_delete(sqlite3_vfs* vfs, const char* name, int sync_directory) noexcept {
  FileSystem& files = files_of(vfs);
  const Path path(name);
  if (path.native().ends_with("-wal")) {
    // We hold the lock on the database, so a -shm file beside it is what a killed server left.
    const auto shared_memory = Path(path.native().substr(0, path.native().size() - 4) + "-shm");
    if (files.exists(shared_memory).value_or(false)) {
      static_cast<void>(files.remove(shared_memory));  // SQLite distrusts a stale one by itself
    }
  }
  const auto removed = files.remove(path);
  if (!removed) {
    return removed.error().code == Errc::kNotFound ? SQLITE_IOERR_DELETE_NOENT
                                                   : note(removed.error(), SQLITE_IOERR_DELETE);
  }
  if (sync_directory != 0) {
    const auto synced = files.sync_directory(parent_of(path));
    if (!synced) {
      return note(synced.error(), SQLITE_IOERR_DIR_FSYNC);
    }
  }
  return SQLITE_OK;
}

int vfs_access(sqlite3_vfs* vfs, const char* name, int /*flags*/, int* result) noexcept {
  // As on Linux, an empty file counts as missing: an empty journal says nothing.
  const auto size = files_of(vfs).file_size(name);
  if (!size && size.error().code != Errc::kNotFound) {
    return note(size.error(), SQLITE_IOERR_ACCESS);
  }
  *result = size && *size > 0 ? 1 : 0;
  return SQLITE_OK;
}

int vfs_full_pathname(sqlite3_vfs* /*vfs*/, const char* name, int size, char* out) noexcept {
  const std::size_t length = std::strlen(name);
  if (length >= static_cast<std::size_t>(size)) {
    return SQLITE_CANTOPEN;
  }
  std::memcpy(out, name, length + 1);
  return SQLITE_OK;
}

int vfs_randomness(sqlite3_vfs* /*vfs*/, int size, char* out) noexcept {
  for (int done = 0; done < size;) {
    const std::uint64_t value = system_random().next();
    const int part = std::min<int>(size - done, sizeof value);
    std::memcpy(out + done, &value, static_cast<std::size_t>(part));
    done += part;
  }
  return size;
}

int vfs_sleep(sqlite3_vfs* /*vfs*/, int microseconds) noexcept {
  return microseconds;  // only busy handlers sleep, and there is none
}

int vfs_current_time(sqlite3_vfs* /*vfs*/, double* days) noexcept {
  *days = 2440587.5;  // 1970: time comes from Clock, never from SQL
  return SQLITE_OK;
}

int vfs_last_error(sqlite3_vfs* /*vfs*/, int /*size*/, char* /*out*/) noexcept { return 0; }

}  // namespace

std::optional<Error>& last_disk_error() {
  thread_local std::optional<Error> error;
  return error;
}

std::shared_ptr<Vfs> Vfs::of(FileSystem& files) {
  static std::mutex mutex;
  static std::map<FileSystem*, std::weak_ptr<Vfs>> registered;
  const std::lock_guard lock(mutex);
  std::erase_if(registered, [](const auto& entry) { return entry.second.expired(); });
  auto& known = registered[&files];
  auto vfs = known.lock();
  if (!vfs) {
    vfs = std::make_shared<Vfs>(files);
    known = vfs;
  }
  return vfs;
}

Vfs::Vfs(FileSystem& files) : files_(files) {
  // The address alone could be that of a dead one whose last connection is just closing.
  static std::atomic<std::uint64_t> count{0};
  name_ = fmt::format("verger-{}-{}", static_cast<const void*>(&files), count++);
  vfs_.iVersion = 1;
  vfs_.szOsFile = sizeof(OpenFile);
  vfs_.mxPathname = 4096;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = vfs_open;
  vfs_.xDelete = vfs_delete;
  vfs_.xAccess = vfs_access;
  vfs_.xFullPathname = vfs_full_pathname;
  vfs_.xRandomness = vfs_randomness;
  vfs_.xSleep = vfs_sleep;
  vfs_.xCurrentTime = vfs_current_time;
  vfs_.xGetLastError = vfs_last_error;
  sqlite3_vfs_register(&vfs_, 0);
}

Vfs::~Vfs() { sqlite3_vfs_unregister(&vfs_); }

std::string Vfs::scratch_name() {
  const std::lock_guard lock(mutex_);
  return fmt::format("scratch-{}", scratch_files_++);
}

}  // namespace verger::sqlite::detail
