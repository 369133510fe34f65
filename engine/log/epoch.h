#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/result.h"
#include "engine/base/types.h"
#include "engine/base/uuid.h"

namespace verger::log {

/// The term of one leader, as its record in the log gives it (docs/formats/log.md).
struct Epoch {
  LogPosition position{-1};
  EpochNumber number{-1};
  Uuid id;
  LogPosition previous{-1};  ///< -1 for the first
  Ticks timestamp;
  Uuid leader_instance_id;
  friend bool operator==(const Epoch&, const Epoch&) = default;
};

/// Exactly the server's text: two-space indentation, members equal to zero left out.
std::string encode_epoch_json(const Epoch& epoch);
/// Missing members are zero. Errors: kCorruption.
Result<Epoch> decode_epoch_json(ByteView json);

/// The newest epochs (at most 1000), oldest first.
class EpochHistory {
 public:
  void add(Epoch epoch);
  void truncate(LogPosition position);
  const std::vector<Epoch>& all() const { return epochs_; }
  std::optional<Epoch> last() const;
  /// The epoch in force at `position`.
  std::optional<Epoch> at(LogPosition position) const;

 private:
  std::vector<Epoch> epochs_;
};

}  // namespace verger::log
