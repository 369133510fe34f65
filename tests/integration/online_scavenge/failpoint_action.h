#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace verger::agent {

/// The agent's process ended here.
struct AgentEnded : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a failpoint of that name does, from any thread.
inline std::function<void()>& at_failpoint() {
  static std::function<void()> action;
  return action;
}
inline std::string& failpoint_name() {
  static std::string name;
  return name;
}
inline void on_failpoint(std::string_view name) {
  if (name == failpoint_name() && at_failpoint()) {
    at_failpoint()();
  }
}

}  // namespace verger::agent
