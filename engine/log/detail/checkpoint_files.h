#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/log/transaction_log.h"

namespace verger::log::detail {

enum class Checkpoint : std::uint8_t { kWriter, kChaser, kEpoch, kProposal, kTruncate };
inline constexpr std::size_t kCheckpointCount = 5;

/// "writer.chk" and so on.
std::string_view checkpoint_file_name(Checkpoint which);

/// The five *.chk files of a database directory: 8 bytes each, overwritten in place, which is safe
/// because 8 bytes never straddle a disk sector. One thread.
class CheckpointFiles {
 public:
  /// Reads what is there and changes nothing. A missing file has its initial value; a short one
  /// counts as filled up with zeros, of a long one the first 8 bytes count, as the server has it.
  /// Errors: kIo, kCorruption (a proposal that is no epoch number).
  static Result<CheckpointFiles> load(FileSystem& files, const Path& directory);

  /// As stored; truncate and the others need not be consistent.
  [[nodiscard]] Checkpoints values() const;
  [[nodiscard]] std::int64_t value(Checkpoint which) const { return at(which).value; }
  /// nullopt when the file is missing.
  [[nodiscard]] std::optional<std::uint64_t> file_size(Checkpoint which) const {
    return at(which).size;
  }
  /// The value is on the disk when this returns; nothing happens when it is there already.
  Result<void> store(Checkpoint which, std::int64_t value);
  /// Other programs read the value when this returns; a power cut may leave the one before.
  Result<void> write(Checkpoint which, std::int64_t value);

  /// To be overwritten with another value by another part, which then calls note_stored(). The file
  /// has its 8 bytes.
  Result<std::shared_ptr<File>> open_to_overwrite(Checkpoint which);
  /// `value` is on the disk.
  void note_stored(Checkpoint which, std::int64_t value);

  friend bool operator==(const CheckpointFiles& a, const CheckpointFiles& b);

 private:
  struct One {
    std::int64_t value = 0;
    std::optional<std::uint64_t> size;
    std::shared_ptr<File> file;  ///< open for writing since the first store
    bool synced = true;
  };
  CheckpointFiles(FileSystem& files, const Path& directory)
      : files_(&files), directory_(directory) {}
  /// The value in place of what the file has; it is there.
  Result<void> overwrite(One& one, const Path& path, std::int64_t value);
  [[nodiscard]] const One& at(Checkpoint which) const {
    return all_[static_cast<std::size_t>(which)];
  }

  FileSystem* files_;
  Path directory_;
  std::array<One, kCheckpointCount> all_;
};

}  // namespace verger::log::detail
