#include "engine/base/file_verification.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "engine/base/assert.h"

namespace verger {
namespace {

constexpr std::size_t kPieceSize = 64UZ * 1024;
constexpr std::chrono::milliseconds kBetweenPauses(20);

}  // namespace

struct FileVerification::Lane {
  std::size_t file = 0;
  std::uint64_t at = 0;
  Bytes piece = {};
  bool ended = false;
};

FileVerification::FileVerification(std::vector<VerifiedFile> files)
    : files_(std::move(files)),
      outcomes_(files_.size()),
      thread_([this](const std::stop_token& stop) { compare(stop); }) {
  VERGER_ASSERT(!files_.empty() && files_.size() <= kMostFiles);
}

std::size_t FileVerification::number_of(const void* object) const {
  const auto found =
      std::ranges::find(files_, object, [](const VerifiedFile& file) { return file.object.get(); });
  return static_cast<std::size_t>(found - files_.begin());
}

bool FileVerification::includes(const void* object) const {
  return number_of(object) < files_.size();
}

bool FileVerification::has_ended(const void* object) {
  const std::lock_guard lock(mutex_);
  return outcomes_[number_of(object)].has_value();
}

void FileVerification::note(std::size_t file, Result<void> outcome) {
  const std::lock_guard lock(mutex_);
  outcomes_[file] = std::move(outcome);
  ended_.notify_all();
}

bool FileVerification::read_piece(Lane& lane) {
  const auto& file = files_[lane.file];
  lane.piece.resize(
      static_cast<std::size_t>(std::min<std::uint64_t>(kPieceSize, file.size - lane.at)));
  if (auto read = file.read(lane.at, lane.piece); !read) {
    note(lane.file, std::move(read));
    return false;
  }
  lane.at += lane.piece.size();
  return true;
}

void FileVerification::compare(const std::stop_token& stop) {
  std::vector<Lane> lanes(files_.size());
  for (std::size_t n = 0; n < lanes.size(); ++n) {
    lanes[n].file = n;
  }
  Md5Lanes hashes;
  auto left = lanes.size();
  while (left > 0 && !stop.stop_requested()) {
    std::array<ByteView, kMostFiles> pieces{};
    for (auto& lane : lanes) {
      if (lane.ended) {
        continue;
      }
      if (read_piece(lane)) {
        pieces[lane.file] = lane.piece;
      } else {
        lane.ended = true;
        --left;
      }
    }
    hashes.update(std::span(pieces).first(lanes.size()));
    for (auto& lane : lanes) {
      if (!lane.ended && lane.at == files_[lane.file].size) {
        note(lane.file, files_[lane.file].compare(hashes.finish(lane.file)));
        lane.ended = true;
        --left;
      }
    }
  }
}

Result<void> FileVerification::finish(const void* object,
                                      const std::function<Result<void>()>& pause) {
  const auto n = number_of(object);
  VERGER_ASSERT(n < files_.size());
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenPauses, [&] { return outcomes_[n].has_value(); })) {
    VERGER_RETURN_IF_ERROR(pause());
  }
  return *outcomes_[n];
}

}  // namespace verger
