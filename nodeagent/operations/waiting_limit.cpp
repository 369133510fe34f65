#include "nodeagent/operations/waiting_limit.h"

#include <nlohmann/json.hpp>

namespace verger::agent {

bool waited_longer_than(std::chrono::seconds limit, Ticks now, OperationRecord& record) {
  auto memory = memory_of(record);
  const auto since = memory.value("since", now.value());
  if (!memory.contains("since") || since > now.value()) {
    memory["since"] = now.value();
    record.memory_json = memory.dump();
    return false;
  }
  return now.value() - since > limit.count() * kTicksPerSecond;
}

}  // namespace verger::agent
