#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/types.h"

namespace verger::sim {

/// What can be wrong at a node for a while, without its process doing anything about it.
enum class Ailment : std::uint8_t {
  kLittleDisk,  ///< next to nothing is free
  kOldAgent,    ///< its agent is of a version that is not to be relied on
  kAgentLies,   ///< its agent tells another version of the node than the node itself
  kShortCertificate,
  kStranger,  ///< another machine with another database is at its address
  kClockOff,  ///< the clock there, or the controller's, is not the right one
};

/// Which node has what, and since when: the truth that claims are compared with.
class Ailments {
 public:
  void begin(Ailment what, std::string_view node, Monotonic now) {
    auto& times = times_[{what, std::string(node)}];
    if (!times.holds) {
      times = {.holds = true, .changed = now};
    }
  }
  void end(Ailment what, std::string_view node, Monotonic now) {
    if (const auto found = times_.find({what, std::string(node)});
        found != times_.end() && found->second.holds) {
      found->second = {.holds = false, .changed = now};
    }
  }
  void end_all(Monotonic now) {
    for (auto& [what, times] : times_) {
      if (times.holds) {
        times = {.holds = false, .changed = now};
      }
    }
  }
  [[nodiscard]] bool has(Ailment what, std::string_view node) const {
    const auto* times = find(what, node);
    return times != nullptr && times->holds;
  }
  /// All the time since `duration` before `now`.
  [[nodiscard]] bool lasts(Ailment what, std::string_view node, Monotonic now,
                           std::chrono::milliseconds duration) const {
    const auto* times = find(what, node);
    return times != nullptr && times->holds && now - times->changed > duration;
  }
  /// At any time since then.
  [[nodiscard]] bool was(Ailment what, std::string_view node, Monotonic now,
                         std::chrono::milliseconds duration) const {
    const auto* times = find(what, node);
    return times != nullptr && (times->holds || now - times->changed <= duration);
  }

 private:
  struct Times {
    bool holds = false;
    Monotonic changed{};
  };
  [[nodiscard]] const Times* find(Ailment what, std::string_view node) const {
    const auto found = times_.find({what, std::string(node)});
    return found == times_.end() ? nullptr : &found->second;
  }
  std::map<std::pair<Ailment, std::string>, Times> times_;
};

}  // namespace verger::sim
