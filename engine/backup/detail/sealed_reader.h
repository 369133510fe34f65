#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "engine/backup/detail/sealed_format.h"

namespace verger::backup::detail {

/// Segments that were opened last, of all objects of a store: reading in small pieces opens each
/// once. Bounded; safe from any thread.
class SegmentCache {
 public:
  using Segment = std::shared_ptr<const Bytes>;
  [[nodiscard]] std::uint64_t new_object() { return next_object_++; }
  /// nullptr: it is not there.
  Segment find(std::uint64_t object, std::uint64_t number);
  void add(std::uint64_t object, std::uint64_t number, Segment segment);

 private:
  struct Entry {
    std::uint64_t object = 0;
    std::uint64_t number = 0;
    Segment segment;
  };
  std::atomic<std::uint64_t> next_object_{0};
  std::mutex mutex_;
  std::list<Entry> entries_;  ///< the latest first
};

/// Content of a sealed object, at any offset. Safe from any thread.
class SealedReader {
 public:
  using ReadAt = std::function<Result<void>(std::uint64_t offset, MutableBytes into)>;
  /// `read` reads the object, which has `size` bytes; safe from any thread. `beginning`: its first
  /// kSealedHeaderSize bytes, or all. Errors: as of ObjectSeal::of(); kCorruption (it is cut,
  /// longer, or another object than `name`).
  static Result<SealedReader> open(ReadAt read, std::uint64_t size, ByteView beginning,
                                   std::string_view name, const KeyRing* keys,
                                   std::shared_ptr<SegmentCache> cache);

  [[nodiscard]] std::uint64_t size() const { return content_size_; }
  /// Errors: kCorruption (it ends before, or was changed), those of reading.
  Result<void> read_exact(std::uint64_t offset, MutableBytes into) const;

 private:
  SealedReader(ReadAt read, ObjectSeal seal, std::shared_ptr<SegmentCache> cache)
      : read_(std::move(read)),
        seal_(std::move(seal)),
        cache_(std::move(cache)),
        object_(cache_->new_object()) {}
  Result<void> read_layout(std::uint64_t size, std::string_view name);
  Result<void> read_index(std::uint64_t size, std::uint64_t count, ByteView tail);
  [[nodiscard]] std::uint64_t plain_size(std::uint64_t number) const;
  Result<void> open_segment(std::uint64_t number, MutableBytes plain) const;
  Result<SegmentCache::Segment> cached_segment(std::uint64_t number) const;

  ReadAt read_;
  ObjectSeal seal_;
  std::shared_ptr<SegmentCache> cache_;
  std::uint64_t object_;
  std::uint64_t content_size_ = 0;
  std::vector<std::uint64_t> offsets_;  ///< of each segment in the object, and behind the last
};

/// The content of a sealed object that is in memory. Errors: as of SealedReader::open().
Result<Bytes> open_content(ByteView object, std::string_view name, const KeyRing* keys);

}  // namespace verger::backup::detail
