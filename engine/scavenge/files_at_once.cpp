#include "engine/scavenge/files_at_once.h"

#include <algorithm>

namespace verger::scavenge {
namespace {

constexpr std::size_t kFilesHashedTogether = 6;
/// As many as can wait for the disk while others are written.
constexpr std::size_t kFilesFinished = 2;
/// A merge's source may be hashed beside the new file.
static_assert(2 * kFilesHashedTogether + kFilesFinished <= Md5Thread::kMostMessages);
/// Chunks for which there is room on the disk, where more files than threads are written.
constexpr std::uint64_t kAmpleRoom = 16;

}  // namespace

FilesAtOnce::FilesAtOnce(const RunContext& context)
    : context_(context),
      threads_(static_cast<std::size_t>(context.options.threads)),
      most_(threads_),
      hasher_(context.options.hash_in_background ? std::make_shared<Md5Thread>() : nullptr) {
  // With a throttle a chunk at a time is written, so that rests are short and come often.
  if (context.options.works_ahead()) {
    most_ = std::max(threads_, kFilesHashedTogether);
    finishing_ = kFilesFinished;
  }
}

bool FilesAtOnce::allows(std::size_t written, std::size_t finishing) const {
  if (written >= most_ || written + finishing >= most_ + finishing_) {
    return false;
  }
  if (written + finishing < threads_) {
    return true;
  }
  const auto& log = context_.parts.log;
  const auto space = context_.parts.files.space(log.directory());
  return space && space->available >= kAmpleRoom * static_cast<std::uint64_t>(log.chunk_size());
}

}  // namespace verger::scavenge
