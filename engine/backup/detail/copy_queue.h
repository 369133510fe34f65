#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/backup/detail/file_copy.h"
#include "engine/backup/manifest.h"
#include "engine/scavenge/parallel_runner.h"

namespace verger::backup::detail {

/// A file that is to be in the generation, and how its content is read.
struct WantedFile {
  BackedUpFile entry;  ///< all but the digest
  ReadAt read;
  ReadOnce cache;
};

/// What was stored before, by path: of the parent, and of backups that were interrupted.
class KnownFiles {
 public:
  void add(const std::vector<BackedUpFile>& files);
  /// The digest under which this very content is in the store; nullopt: it has to be read.
  Result<std::optional<Sha256Digest>> find(BlobStore& store, const BackedUpFile& wanted) const;

 private:
  std::multimap<std::string, BackedUpFile, std::less<>> by_path_;
};

/// Files on their way into a store, some side by side.
class CopyQueue {
 public:
  CopyQueue(BlobStore& store, const KnownFiles& known, scavenge::ParallelRunner& runner,
            std::size_t lanes)
      : store_(store), known_(known), runner_(runner), lanes_(lanes == 0 ? 1 : lanes) {}

  void add(WantedFile file) { waiting_.push_back(std::move(file)); }
  /// Copies up to `most` bytes for each lane; true once all is stored.
  Result<bool> step(std::uint64_t most);
  /// What has been stored since the last call, complete.
  std::vector<BackedUpFile> take_stored() { return std::exchange(stored_, {}); }
  /// Of a file that is stored, and was not added.
  void count_reused(std::uint64_t bytes) { reused_ += bytes; }
  [[nodiscard]] std::uint64_t copied() const { return copied_; }
  [[nodiscard]] std::uint64_t reused() const { return reused_; }

 private:
  struct Lane {
    BackedUpFile entry;
    FileCopy copy;
    Result<bool> outcome = false;
    std::uint64_t seen = 0;  ///< of the copy's bytes, counted
  };
  Result<void> fill();

  BlobStore& store_;
  const KnownFiles& known_;
  scavenge::ParallelRunner& runner_;
  std::size_t lanes_;
  std::deque<WantedFile> waiting_;
  std::vector<Lane> running_;
  std::vector<BackedUpFile> stored_;
  std::uint64_t copied_ = 0;
  std::uint64_t reused_ = 0;
};

}  // namespace verger::backup::detail
