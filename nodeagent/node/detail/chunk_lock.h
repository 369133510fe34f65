#pragma once

#include <memory>

namespace verger::node {

/// Who may switch chunk files: one scavenge, or one redaction. On the node's executor.
class ChunkLock {
 public:
  /// Holds the lock until the last copy is gone.
  using Held = std::shared_ptr<const void>;

  /// Null while another one holds it.
  [[nodiscard]] Held try_take() {
    if (!holder_.expired()) {
      return nullptr;
    }
    Held held = std::make_shared<bool>(true);
    holder_ = held;
    return held;
  }

 private:
  std::weak_ptr<const void> holder_;
};

}  // namespace verger::node
