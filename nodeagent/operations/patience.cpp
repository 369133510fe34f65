#include "nodeagent/operations/patience.h"

#include <nlohmann/json.hpp>

namespace verger::agent {

bool waited_longer_than(std::chrono::seconds patience, Ticks now, nlohmann::json& memory) {
  const auto since = memory.value("since", now.value());
  if (!memory.contains("since") || since > now.value()) {
    memory["since"] = now.value();
    return false;
  }
  return now.value() - since > patience.count() * kTicksPerSecond;
}

}  // namespace verger::agent
