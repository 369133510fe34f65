#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace verger::http {

/// The body of a request or an answer: what was written and is not sent yet.
class OutgoingData {
 public:
  [[nodiscard]] std::size_t size() const { return bytes_.size() - begin_; }
  [[nodiscard]] bool empty() const { return size() == 0; }
  void append(std::string_view bytes) {
    bytes_.erase(0, begin_);
    begin_ = 0;
    bytes_ += bytes;
  }
  /// Moves at most `most` bytes of it to `into`. How many that were.
  std::size_t take(std::uint8_t* into, std::size_t most) {
    const auto count = std::min(most, size());
    std::memcpy(into, bytes_.data() + begin_, count);
    begin_ += count;
    return count;
  }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  ///< what is before it has been sent
};

}  // namespace verger::http
