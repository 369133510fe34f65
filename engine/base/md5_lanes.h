#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/bytes.h"
#include "engine/base/digest.h"

namespace verger {

/// The MD5 of up to kLanes messages at once. What one step of MD5 has to wait for is done for all
/// of them meanwhile: on a processor with wide registers eight messages, or all sixteen, take
/// hardly longer than one.
class Md5Lanes {
 public:
  static constexpr std::size_t kLanes = 16;

  Md5Lanes();
  /// Adds `pieces[n]` to the message in lane n. It is fastest where all pieces are large and of the
  /// same size. A lane whose piece is empty is not touched: another thread may use it meanwhile.
  void update(std::span<const ByteView> pieces);
  /// Ends the lane's message; the next piece begins another one.
  Md5Digest finish(std::size_t lane);

 private:
  static constexpr std::size_t kBlock = 64;
  struct Message {
    std::array<std::uint32_t, 4> state{};
    std::uint64_t size = 0;
    std::array<std::byte, kBlock> tail{};  ///< the last size % 64 bytes
  };

  static void start(Message& message);

  std::array<Message, kLanes> messages_;
};

}  // namespace verger
