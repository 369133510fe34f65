#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "nodeagent/api/agent_jobs.h"
#include "nodeagent/operations/secret_file.h"

namespace verger::agent {

struct FileStoreLimits {
  std::uint64_t file_bytes = 1U << 20U;
  std::uint64_t total_bytes = 16U << 20U;
  /// A file that no operation refers to goes this long after it was last stored.
  std::chrono::hours age{7 * 24};
};

/// The files that controllers brought for operations, by the SHA-256 of their content:
/// certificates, keys, configurations. Each is a file of its own, "<sha256>.<second it was
/// stored>", in one directory that nothing else uses; a crash leaves a file as a whole or not at
/// all. Contents are secrets: they are never logged, and no message has them. One thread.
class FileStore {
 public:
  struct Environment {
    FileSystem& files;
    Clock& clock;
    Log& log;
    MakePrivate make_private{};
    /// Whether an operation that has not ended refers to the file.
    std::function<bool(std::string_view sha256)> in_use{};
  };

  /// Removes what a crash left half written, and what is too old. Errors: kIo, kNoSpace.
  static Result<std::unique_ptr<FileStore>> open(Path directory, Environment environment,
                                                 const FileStoreLimits& limits = {});

  /// Durable when it returns. A file that is there already counts as stored now. Errors:
  /// kInvalidArgument (no SHA-256, another content, too large), kNoSpace (the store or the disk is
  /// full), kIo. After an error nothing was stored.
  Result<api::StoredFile> put(std::string_view sha256, ByteView content);
  /// Error: kNotFound.
  [[nodiscard]] Result<api::StoredFile> find(std::string_view sha256) const;
  /// The content, checked. Errors: kNotFound, kCorruption, kIo.
  [[nodiscard]] Result<Bytes> read(std::string_view sha256) const;
  /// Errors: kNotFound, kConflict (an operation refers to it), kIo.
  Result<void> remove(std::string_view sha256);
  /// Oldest first.
  [[nodiscard]] std::vector<api::StoredFile> list() const;
  /// Removes what is too old and in no use. What cannot be removed is tried again.
  void collect();

 private:
  struct Entry {
    std::string sha256;
    std::int64_t stored_second = 0;  ///< since 1970
    std::uint64_t bytes = 0;
  };

  FileStore(Path directory, Environment environment, const FileStoreLimits& limits)
      : directory_(std::move(directory)), environment_(std::move(environment)), limits_(limits) {}
  Result<void> load();
  [[nodiscard]] std::int64_t now_second() const;
  [[nodiscard]] Path path_of(const Entry& entry) const;
  [[nodiscard]] const Entry* entry_of(std::string_view sha256) const;
  [[nodiscard]] bool in_use(std::string_view sha256) const;
  Result<void> drop(std::string_view sha256);
  static api::StoredFile shown(const Entry& entry);

  Path directory_;
  Environment environment_;
  FileStoreLimits limits_;
  std::vector<Entry> entries_;  ///< oldest first
};

/// 64 lower-case hexadecimal digits.
bool is_sha256(std::string_view text);

}  // namespace verger::agent
