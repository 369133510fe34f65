#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/digest.h"
#include "engine/base/md5_lanes.h"
#include "engine/base/result.h"

namespace verger {

/// A file that says which MD5 its first `size` bytes have.
struct VerifiedFile {
  std::shared_ptr<const void> object;  ///< by which it is known, and kept open
  std::uint64_t size = 0;
  /// Error: kIo.
  std::function<Result<void>(std::uint64_t offset, MutableBytes into)> read;
  /// Errors: kCorruption (the file says another one), kIo.
  std::function<Result<void>(const Md5Digest& computed)> compare;
};

/// Compares files with the MD5s that they hold in a thread of its own, which reads them from end to
/// end, side by side: for files that are about to be read. One thread uses it; its end is the
/// thread's.
class FileVerification {
 public:
  static constexpr std::size_t kMostFiles = Md5Lanes::kLanes;
  /// At most kMostFiles.
  explicit FileVerification(std::vector<VerifiedFile> files);

  /// Is this one of the objects?
  [[nodiscard]] bool includes(const void* object) const;
  /// Has it been compared, so that finish() does not wait?
  [[nodiscard]] bool has_ended(const void* object);
  /// Waits for one of them. Errors: kCorruption, kIo, those of `pause`, which is called again and
  /// again.
  Result<void> finish(const void* object, const std::function<Result<void>()>& pause);

 private:
  struct Lane;
  /// Reads the next piece; false: it cannot be read.
  bool read_piece(Lane& lane);
  void compare(const std::stop_token& stop);
  void note(std::size_t file, Result<void> outcome);
  [[nodiscard]] std::size_t number_of(const void* object) const;

  std::vector<VerifiedFile> files_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::optional<Result<void>>> outcomes_;  ///< one for each file
  std::jthread thread_;                                ///< last: it ends before what it uses
};

}  // namespace verger
