#include "engine/streams/detail/event_spill.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/varint.h"

namespace verger::streams::detail {
namespace {

constexpr std::size_t kSegmentSize = 1U << 20U;
constexpr std::byte kSameStream{1};
constexpr std::byte kMetadata{2};

/// Writes small events into memory of its own, which is appended as a whole.
class EventWriter {
 public:
  void byte(std::byte value) { bytes_[size_++] = value; }
  void varint(std::uint64_t value) { size_ += store_varint(bytes_.data() + size_, value); }
  /// Small where the value is near zero, of either sign.
  void number(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    varint((bits << 1U) ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }
  template <std::size_t kSize>
  void bytes(const std::array<std::byte, kSize>& value) {
    std::ranges::copy(value, bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += kSize;
  }
  void append_to(Bytes& out) {
    append_bytes(out, ByteView(bytes_).first(size_));
    size_ = 0;
  }

 private:
  /// Flags, stream, three numbers of at most 10 bytes, digest, and one more number.
  std::array<std::byte, 1 + 16 + 3 * kMostBytesOfVarint + 32 + kMostBytesOfVarint> bytes_;
  std::size_t size_ = 0;
};

/// Reads what EventWriter wrote; the segment is ours, so that its end is an error of
/// the disk.
class SegmentReader {
 public:
  explicit SegmentReader(ByteView bytes) : left_(bytes) {}
  [[nodiscard]] bool at_end() const { return left_.empty() || failed_; }
  [[nodiscard]] bool failed() const { return failed_; }

  std::byte byte() {
    if (left_.empty()) {
      failed_ = true;
      return std::byte{0};
    }
    const auto value = left_.front();
    left_ = left_.subspan(1);
    return value;
  }
  std::uint64_t varint() {
    const auto value = take_varint(left_);
    failed_ = failed_ || !value;
    return value.value_or(0);
  }
  std::int64_t number() {
    const auto bits = varint();
    return static_cast<std::int64_t>((bits >> 1U) ^ ((bits & 1U) != 0 ? ~std::uint64_t{0} : 0));
  }
  template <std::size_t kSize>
  void bytes(std::array<std::byte, kSize>& into) {
    if (left_.size() < kSize) {
      failed_ = true;
      return;
    }
    std::copy_n(left_.begin(), kSize, into.begin());
    left_ = left_.subspan(kSize);
  }

 private:
  ByteView left_;
  bool failed_ = false;
};

SpilledEvent read_event(SegmentReader& in, const SpilledEvent* last) {
  SpilledEvent out;
  const auto flags = in.byte();
  if ((flags & kSameStream) != std::byte{0} && last != nullptr) {
    out.stream = last->stream;
  } else {
    in.bytes(out.stream);
  }
  out.number = EventNumber(in.number());
  out.timestamp = Ticks(in.number() + (last == nullptr ? 0 : last->timestamp.value()));
  out.position = LogPosition(in.number() + (last == nullptr ? 0 : last->position.value()));
  in.bytes(out.digest);
  if ((flags & kMetadata) != std::byte{0}) {
    for (auto left = in.varint(); left > 0 && !in.failed(); --left) {
      in.bytes(out.originals.emplace_back());
    }
    out.limits.max_count = in.number();
    out.limits.truncate_before = in.number();
    out.limits.max_age_seconds = in.number();
  }
  return out;
}

}  // namespace

void EventSpill::seal(Partition& partition) {
  if (!partition.open.empty()) {
    const auto size = partition.open.size();
    partition.sealed.push_back({.bytes = std::move(partition.open), .offset = 0, .size = size});
    partition.open = Bytes();
  }
}

void EventSpill::append(Partition& partition, const SpilledEvent& event) {
  auto& out = partition.open;
  const bool first = out.empty();
  const bool same = !first && event.stream == partition.last_stream;
  const bool metadata = !event.originals.empty();
  EventWriter writer;
  writer.byte((same ? kSameStream : std::byte{0}) | (metadata ? kMetadata : std::byte{0}));
  if (!same) {
    writer.bytes(event.stream);
  }
  writer.number(event.number.value());
  writer.number(event.timestamp.value() - (first ? 0 : partition.last_timestamp.value()));
  writer.number(event.position.value() - (first ? 0 : partition.last_position.value()));
  writer.bytes(event.digest);
  if (metadata) {
    writer.varint(event.originals.size());
    writer.append_to(out);
    for (const auto& original : event.originals) {
      append_bytes(out, original);
    }
    writer.number(event.limits.max_count);
    writer.number(event.limits.truncate_before);
    writer.number(event.limits.max_age_seconds);
  }
  writer.append_to(out);
  partition.last_stream = event.stream;
  partition.last_timestamp = event.timestamp;
  partition.last_position = event.position;
}

Result<void> EventSpill::add(std::size_t partition, const SpilledEvent& event) {
  auto& into = partitions_[partition];
  const auto before = into.open.size();
  append(into, event);
  in_memory_ += into.open.size() - before;
  if (into.open.size() >= kSegmentSize) {
    seal(into);
  }
  return options_.files != nullptr && in_memory_ >= options_.memory_bytes ? write_out()
                                                                          : Result<void>();
}

Result<void> EventSpill::write_out() {
  auto& files = *options_.files;
  const auto& directory = options_.temporary_directory;
  VERGER_TRY(const auto space, files.space(directory));
  if (space.available < in_memory_ + options_.keep_free) {
    return Error{Errc::kNoSpace,
                 fmt::format("{}: a readable digest needs room for temporary files here: {} MiB so "
                             "far, and {} MiB must stay free, but {} MiB are",
                             directory.string(), (file_size_ + in_memory_) >> 20U,
                             options_.keep_free >> 20U, space.available >> 20U)};
  }
  if (file_ == nullptr) {
    const auto path = directory / "digest.tmp";
    if (auto removed = files.remove(path); !removed && removed.error().code != Errc::kNotFound) {
      return removed;
    }
    VERGER_TRY(file_, files.open(path, OpenMode::kCreateNew));
    VERGER_RETURN_IF_ERROR(files.remove(path));  // so that nothing is left of it, however this ends
  }
  for (auto& partition : partitions_) {
    seal(partition);
    for (auto& segment : partition.sealed) {
      if (segment.bytes.empty()) {
        continue;
      }
      VERGER_RETURN_IF_ERROR(file_->write_at(file_size_, segment.bytes));
      segment.offset = file_size_;
      file_size_ += segment.size;
      segment.bytes = Bytes();
    }
  }
  in_memory_ = 0;
  return {};
}

std::size_t EventSpill::segments(std::size_t partition) const {
  const auto& of = partitions_[partition];
  return of.sealed.size() + (of.open.empty() ? 0 : 1);
}

std::uint64_t EventSpill::bytes(std::size_t partition) const {
  const auto& of = partitions_[partition];
  std::uint64_t sum = of.open.size();
  for (const auto& segment : of.sealed) {
    sum += segment.size;
  }
  return sum;
}

Result<void> EventSpill::read(std::size_t partition, std::size_t segment, std::size_t kept,
                              std::vector<SpilledEvent>& into) const {
  into.resize(kept);
  const auto& of = partitions_[partition];
  Bytes buffer;
  ByteView bytes = of.open;
  if (segment < of.sealed.size()) {
    const auto& sealed = of.sealed[segment];
    bytes = sealed.bytes;
    if (sealed.bytes.empty()) {
      buffer.resize(sealed.size);
      VERGER_RETURN_IF_ERROR(file_->read_exact(sealed.offset, buffer));
      bytes = buffer;
    }
  }
  SegmentReader in(bytes);
  while (!in.at_end()) {
    auto event = read_event(in, into.size() == kept ? nullptr : &into.back());
    into.push_back(std::move(event));
  }
  if (in.failed()) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: the digest's temporary file is not what was written",
                             options_.temporary_directory.string())};
  }
  return {};
}

void EventSpill::drop(std::size_t partition) {
  auto& of = partitions_[partition];
  of.sealed = {};
  of.open = Bytes();
}

}  // namespace verger::streams::detail
