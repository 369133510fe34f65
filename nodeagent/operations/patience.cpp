#include "nodeagent/operations/patience.h"

#include <nlohmann/json.hpp>

namespace verger::agent {

bool waited_longer_than(std::chrono::seconds patience, Ticks now, OperationRecord& record) {
  auto memory = memory_of(record);
  const auto since = memory.value("since", now.value());
  if (!memory.contains("since") || since > now.value()) {
    memory["since"] = now.value();
    record.memory_json = memory.dump();
    return false;
  }
  return now.value() - since > patience.count() * kTicksPerSecond;
}

}  // namespace verger::agent
