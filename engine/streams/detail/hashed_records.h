#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/background_stage.h"
#include "engine/base/digest.h"
#include "engine/streams/detail/described_event.h"

namespace verger::streams::detail {

/// A stretch of the log on its way to its digests: first what is to be hashed, then the hashes.
struct HashedRecords {
  /// Of each record its position, the size of its payload, and that.
  Bytes log{};
  std::vector<std::size_t> chunk_ends{};  ///< where in `log` a chunk's records end
  std::vector<Sha256Digest> chunks{};     ///< of those that end here
  Bytes messages{};                       ///< of the events, one after the other
  std::vector<DescribedEvent> events{};   ///< with their digests

  void clear();
};

/// Hashes stretches of the log in order, in a thread of its own or the calling one. Those that are
/// hashed are to be taken after each that is given.
class RecordHashing {
 public:
  explicit RecordHashing(bool in_background);
  /// An empty one.
  std::unique_ptr<HashedRecords> make();
  void give(std::unique_ptr<HashedRecords> records);
  /// The oldest one, once it is hashed; nullptr: there is none, or, without `all`, so few that the
  /// next can be given before.
  std::unique_ptr<HashedRecords> take(bool all);
  /// Its memory is used again.
  void recycle(std::unique_ptr<HashedRecords> records);

 private:
  void hash(HashedRecords& records);

  Sha256 chunk_;                       ///< the current one
  std::vector<ByteView> messages_;     ///< of the stretch that is being hashed
  std::vector<Sha256Digest> digests_;  ///< of these
  std::vector<std::unique_ptr<HashedRecords>> spare_;
  std::unique_ptr<HashedRecords> hashed_;  ///< by the calling thread
  std::optional<BackgroundStage<HashedRecords>> background_;
};

}  // namespace verger::streams::detail
