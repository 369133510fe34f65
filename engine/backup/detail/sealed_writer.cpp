#include "engine/backup/detail/sealed_writer.h"

#include <algorithm>

#include "engine/base/assert.h"

namespace verger::backup::detail {

SealedWriter::SealedWriter(Sink sink, const KeyRing* keys, bool compressed, Random& random,
                           std::uint32_t segment_size)
    : sink_(std::move(sink)), seal_(ObjectSeal::make(keys, compressed, random, segment_size)) {
  if (compressed) {
    compressor_.emplace();
  }
  append_bytes(out_, seal_.header_bytes());
}

Result<void> SealedWriter::append(ByteView content) {
  const std::size_t segment_size = seal_.header().segment_size;
  while (!content.empty()) {
    // The last segment is sealed as such: a full one waits until there is more.
    if (segment_.size() == segment_size) {
      VERGER_RETURN_IF_ERROR(flush_segment(SealedPart::kSegment));
    }
    const auto part = content.first(std::min(content.size(), segment_size - segment_.size()));
    append_bytes(segment_, part);
    content = content.subspan(part.size());
  }
  return {};
}

Result<void> SealedWriter::flush_segment(SealedPart part) {
  const auto stored = compressor_ ? compressor_->compress(segment_) : ByteView(segment_);
  seal_.seal(part, stored_sizes_.size(), {}, stored, out_);
  stored_sizes_.push_back(static_cast<std::uint32_t>(stored.size()));
  content_size_ += segment_.size();
  segment_.clear();
  return put_out();
}

Result<void> SealedWriter::put_out() {
  VERGER_RETURN_IF_ERROR(sink_(out_));
  out_.clear();
  return {};
}

Result<void> SealedWriter::finish(std::string_view name) {
  if (!segment_.empty()) {
    VERGER_RETURN_IF_ERROR(flush_segment(SealedPart::kLastSegment));
  }
  Bytes index;
  index.reserve(stored_sizes_.size() * sizeof(std::uint32_t));
  for (const auto size : stored_sizes_) {
    append_le(index, size);
  }
  seal_.seal(SealedPart::kIndex, 0, {}, index, out_);
  Bytes footer;
  append_le(footer, content_size_);
  append_le(footer, static_cast<std::uint64_t>(stored_sizes_.size()));
  seal_.seal(SealedPart::kFooter, 0, name, footer, out_);
  return put_out();
}

Bytes seal_content(ByteView content, std::string_view name, const KeyRing* keys, bool compressed,
                   Random& random) {
  Bytes object;
  SealedWriter writer(
      [&object](ByteView bytes) -> Result<void> {
        append_bytes(object, bytes);
        return {};
      },
      keys, compressed, random);
  const bool done = writer.append(content).has_value() && writer.finish(name).has_value();
  VERGER_ASSERT(done);
  return object;
}

}  // namespace verger::backup::detail
