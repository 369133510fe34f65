#pragma once

#include <cstddef>
#include <memory>

#include "engine/base/background_md5.h"
#include "engine/scavenge/context.h"

namespace verger::scavenge {

/// How many new chunk files a stage has under way: one for each thread; where a thread of its own
/// hashes them, without a throttle and with ample room on the disk, several also with one thread,
/// since their checksums are then computed together, and some more that are only to be finished
/// (docs/decisions/0049-chunk-files-side-by-side.md).
class FilesAtOnce {
 public:
  explicit FilesAtOnce(const RunContext& context);
  /// Files that are written side by side.
  [[nodiscard]] std::size_t most() const { return most_; }
  /// May another file be begun beside `written` that are being written and `finishing` that have
  /// only to be finished?
  [[nodiscard]] bool allows(std::size_t written, std::size_t finishing) const;
  /// May a thread of its own finish them (detail::NewFiles)?
  [[nodiscard]] bool finishes_in_background() const { return hasher_ != nullptr; }
  /// Of all these files; nullptr: each is hashed by who writes it.
  [[nodiscard]] const std::shared_ptr<Md5Thread>& hasher() const { return hasher_; }

 private:
  const RunContext& context_;
  std::size_t threads_;
  std::size_t most_;
  std::size_t finishing_ = 0;  ///< beside these, to be finished
  std::shared_ptr<Md5Thread> hasher_;
};

}  // namespace verger::scavenge
