#pragma once

#include <cstddef>
#include <memory>

#include "engine/base/background_md5.h"
#include "engine/scavenge/context.h"

namespace verger::scavenge {

/// How many new chunk files a stage writes side by side: one for each thread; where a thread of its
/// own hashes them, without a throttle and with ample room on the disk, several also with one
/// thread, since their checksums are then computed together
/// (docs/decisions/0049-chunk-files-side-by-side.md).
class FilesAtOnce {
 public:
  explicit FilesAtOnce(const RunContext& context);
  [[nodiscard]] std::size_t most() const { return most_; }
  /// May another file be begun beside `others`?
  [[nodiscard]] bool allows(std::size_t others) const;
  /// Of all these files; nullptr: each is hashed by who writes it.
  [[nodiscard]] const std::shared_ptr<Md5Thread>& hasher() const { return hasher_; }

 private:
  const RunContext& context_;
  std::size_t threads_;
  std::size_t most_;
  std::shared_ptr<Md5Thread> hasher_;
};

}  // namespace verger::scavenge
