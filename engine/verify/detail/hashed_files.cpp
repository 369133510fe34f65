#include "engine/verify/detail/hashed_files.h"

#include <algorithm>
#include <bit>

namespace verger::verify::detail {
namespace {

/// Of each file: sixteen of the largest stay in the processor's cache until their records are
/// looked at. A step of a small budget takes smaller ones.
constexpr std::uint64_t kLargestPiece = 64UZ * 1024;
constexpr std::uint64_t kSmallestPiece = 1024;

}  // namespace

HashedFile* HashedFileQueue::take(std::size_t has) {
  const std::lock_guard lock(mutex_);
  const auto share = (files_.size() + workers_ - 1) / workers_;
  return next_ == files_.size() || has >= share ? nullptr : files_[next_++];
}

void HashedFilesWork::take_files() {
  auto has = static_cast<std::size_t>(
      std::ranges::count_if(files_, [](const auto* file) { return file != nullptr; }));
  for (auto*& file : files_) {
    if (file == nullptr) {
      file = queue_.take(has);
      if (file == nullptr) {
        return;
      }
      ++has;
    }
  }
}

std::uint64_t HashedFilesWork::read_pieces(std::size_t size) {
  std::array<ByteView, Md5Lanes::kLanes> pieces{};
  std::uint64_t bytes = 0;
  for (std::size_t n = 0; n < files_.size(); ++n) {
    if (files_[n] != nullptr) {
      pieces[n] = files_[n]->read(size);
      bytes += pieces[n].size();
    }
  }
  hashes_.update(pieces);
  for (std::size_t n = 0; n < files_.size(); ++n) {
    auto*& file = files_[n];
    if (file != nullptr && pieces[n].empty()) {
      file->end(hashes_.finish(n));
      file = nullptr;
    } else if (file != nullptr) {
      file->look(part_);
    }
  }
  return bytes;
}

bool HashedFilesWork::step(std::uint32_t units) {
  const auto budget = std::uint64_t{units} * kBytesPerUnit;
  const auto size =
      std::bit_floor(std::clamp(budget / Md5Lanes::kLanes, kSmallestPiece, kLargestPiece));
  std::uint64_t bytes = 0;
  do {
    take_files();
    if (std::ranges::all_of(files_, [](const auto* file) { return file == nullptr; })) {
      return true;
    }
    const auto more = read_pieces(static_cast<std::size_t>(size));
    bytes += more;
    bytes_ += more;
  } while (bytes < budget);
  return false;
}

}  // namespace verger::verify::detail
