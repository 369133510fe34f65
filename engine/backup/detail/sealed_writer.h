#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "engine/backup/detail/sealed_format.h"
#include "engine/backup/detail/segment_codec.h"

namespace verger::backup::detail {

/// Makes a sealed object of content that comes in pieces. One thread.
class SealedWriter {
 public:
  using Sink = std::function<Result<void>(ByteView)>;
  /// `keys` nullptr: not encrypted. `sink` takes the object's bytes in order.
  SealedWriter(Sink sink, const KeyRing* keys, bool compressed, Random& random,
               std::uint32_t segment_size = kSealedSegmentSize);

  /// Errors: those of the sink.
  Result<void> append(ByteView content);
  /// The end of the content. The object can be opened only under this name.
  Result<void> finish(std::string_view name);

 private:
  Result<void> flush_segment(SealedPart part);
  /// To the sink, once it is worth a write.
  Result<void> put_out();

  Sink sink_;
  ObjectSeal seal_;
  std::optional<SegmentCompressor> compressor_;
  Bytes segment_;  ///< of the content, not sealed yet
  Bytes out_;      ///< sealed, not in the sink yet
  std::vector<std::uint32_t> stored_sizes_;
  std::uint64_t content_size_ = 0;
};

/// The sealed object of content that is in memory.
Bytes seal_content(ByteView content, std::string_view name, const KeyRing* keys, bool compressed,
                   Random& random);

}  // namespace verger::backup::detail
