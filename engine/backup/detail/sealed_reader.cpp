#include "engine/backup/detail/sealed_reader.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/backup/detail/segment_codec.h"

namespace verger::backup::detail {
namespace {

constexpr std::size_t kCachedSegments = 16;
constexpr std::size_t kTailSize = 4096;
constexpr std::uint64_t kLargestDocument = 1ULL << 30U;

Error changed(std::string_view what) {
  return {Errc::kCorruption, fmt::format("its {} was changed", what)};
}

Error not_whole() {
  return {Errc::kCorruption, "it is not whole: it was cut, or bytes were added"};
}

}  // namespace

SegmentCache::Segment SegmentCache::find(std::uint64_t object, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.object == object && entry.number == number;
  });
  if (found == entries_.end()) {
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, found);
  return found->segment;
}

void SegmentCache::add(std::uint64_t object, std::uint64_t number, Segment segment) {
  const std::lock_guard lock(mutex_);
  entries_.push_front({.object = object, .number = number, .segment = std::move(segment)});
  if (entries_.size() > kCachedSegments) {
    entries_.pop_back();
  }
}

Result<SealedReader> SealedReader::open(ReadAt read, std::uint64_t size, ByteView beginning,
                                        std::string_view name, const KeyRing* keys,
                                        std::shared_ptr<SegmentCache> cache) {
  if (size < kSealedHeaderSize + kSealedTagSize + kSealedFooterSize) {
    return not_whole();
  }
  VERGER_TRY(auto seal, ObjectSeal::of(beginning, keys));
  SealedReader reader(std::move(read), std::move(seal), std::move(cache));
  VERGER_RETURN_IF_ERROR(reader.read_layout(size, name));
  return reader;
}

Result<void> SealedReader::read_layout(std::uint64_t size, std::string_view name) {
  // Mostly footer and index in one read: of an object store each is a request.
  Bytes tail(std::min<std::uint64_t>(size - kSealedHeaderSize, kTailSize));
  VERGER_RETURN_IF_ERROR(read_(size - tail.size(), tail));
  const auto sealed = ByteView(tail).last(kSealedFooterSize);
  std::array<std::byte, kSealedFooterSize - kSealedTagSize> footer{};
  if (!seal_.open(SealedPart::kFooter, 0, name, sealed, footer)) {
    return Error{Errc::kCorruption,
                 "its end is not that of this object: it was cut or changed, bytes were added, or "
                 "it lies under another name"};
  }
  content_size_ = load_le<std::uint64_t>(footer.data());
  const auto count = load_le<std::uint64_t>(footer.data() + sizeof(std::uint64_t));
  // A segment has a byte at least: no more of them than bytes, so no product below overflows.
  const std::uint64_t segment_size = seal_.header().segment_size;
  if (count > size || content_size_ > count * segment_size ||
      (count > 0 && content_size_ <= (count - 1) * segment_size)) {
    return not_whole();
  }
  return read_index(size, count, tail);
}

Result<void> SealedReader::read_index(std::uint64_t size, std::uint64_t count, ByteView tail) {
  const auto index_size = count * sizeof(std::uint32_t) + kSealedTagSize;
  if (size < kSealedHeaderSize + index_size + kSealedFooterSize) {
    return not_whole();
  }
  const auto index_at = size - kSealedFooterSize - index_size;
  Bytes longer;
  if (index_size + kSealedFooterSize > tail.size()) {
    longer.resize(index_size);
    VERGER_RETURN_IF_ERROR(read_(index_at, longer));
  }
  const auto sealed = longer.empty()
                          ? tail.subspan(tail.size() - kSealedFooterSize - index_size, index_size)
                          : ByteView(longer);
  Bytes index(index_size - kSealedTagSize);
  if (!seal_.open(SealedPart::kIndex, 0, {}, sealed, index)) {
    return changed("index of segments");
  }
  offsets_.reserve(count + 1);
  std::uint64_t offset = kSealedHeaderSize;
  for (std::uint64_t number = 0; number < count; ++number) {
    offsets_.push_back(offset);
    const auto stored = load_le<std::uint32_t>(index.data() + number * sizeof(std::uint32_t));
    if (stored > plain_size(number) ||
        (!seal_.header().compressed && stored != plain_size(number))) {
      return changed("index of segments");
    }
    offset += stored + kSealedTagSize;
  }
  offsets_.push_back(offset);
  return offset == index_at ? Result<void>() : not_whole();
}

std::uint64_t SealedReader::plain_size(std::uint64_t number) const {
  const std::uint64_t segment_size = seal_.header().segment_size;
  return std::min(segment_size, content_size_ - number * segment_size);
}

Result<void> SealedReader::open_segment(std::uint64_t number, MutableBytes plain) const {
  const bool last = number + 2 == offsets_.size();
  const auto part = last ? SealedPart::kLastSegment : SealedPart::kSegment;
  Bytes sealed(offsets_[number + 1] - offsets_[number]);
  VERGER_RETURN_IF_ERROR(read_(offsets_[number], sealed));
  const auto what = [&] { return fmt::format("segment {}", number); };
  if (!seal_.header().compressed) {
    return seal_.open(part, number, {}, sealed, plain) ? Result<void>() : changed(what());
  }
  Bytes stored(sealed.size() - kSealedTagSize);
  return seal_.open(part, number, {}, sealed, stored) && decompress_segment(stored, plain)
             ? Result<void>()
             : changed(what());
}

Result<SegmentCache::Segment> SealedReader::cached_segment(std::uint64_t number) const {
  if (auto found = cache_->find(object_, number)) {
    return found;
  }
  auto plain = std::make_shared<Bytes>(plain_size(number));
  VERGER_RETURN_IF_ERROR(open_segment(number, *plain));
  SegmentCache::Segment segment = std::move(plain);
  cache_->add(object_, number, segment);
  return segment;
}

Result<void> SealedReader::read_exact(std::uint64_t offset, MutableBytes into) const {
  if (offset > content_size_ || into.size() > content_size_ - offset) {
    return Error{Errc::kCorruption, fmt::format("its content ends at {}, before {}", content_size_,
                                                offset + into.size())};
  }
  const std::uint64_t segment_size = seal_.header().segment_size;
  while (!into.empty()) {
    const auto number = offset / segment_size;
    const auto within = offset % segment_size;
    const auto size = plain_size(number);
    const auto part = into.first(std::min<std::uint64_t>(into.size(), size - within));
    if (part.size() == size) {
      VERGER_RETURN_IF_ERROR(open_segment(number, part));
    } else {
      VERGER_TRY(const auto segment, cached_segment(number));
      std::ranges::copy(ByteView(*segment).subspan(within, part.size()), part.begin());
    }
    offset += part.size();
    into = into.subspan(part.size());
  }
  return {};
}

Result<Bytes> open_content(ByteView object, std::string_view name, const KeyRing* keys) {
  VERGER_TRY(const auto reader,
             SealedReader::open(
                 [object](std::uint64_t offset, MutableBytes into) -> Result<void> {
                   if (offset > object.size() || into.size() > object.size() - offset) {
                     return not_whole();
                   }
                   std::ranges::copy(object.subspan(offset, into.size()), into.begin());
                   return {};
                 },
                 object.size(), object.first(std::min(object.size(), kSealedHeaderSize)), name,
                 keys, std::make_shared<SegmentCache>()));
  if (reader.size() > kLargestDocument) {
    return Error{Errc::kUnsupported, fmt::format("it has {} bytes: too large", reader.size())};
  }
  // Memory for what the object says that it holds comes as it is seen to hold it.
  Bytes content;
  while (content.size() < reader.size()) {
    const auto at = content.size();
    content.resize(std::min<std::uint64_t>(reader.size(), at + kSealedSegmentSize));
    VERGER_RETURN_IF_ERROR(reader.read_exact(at, MutableBytes(content).subspan(at)));
  }
  return content;
}

}  // namespace verger::backup::detail
