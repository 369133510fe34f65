#include "controller/executor/freed_bytes.h"

#include <nlohmann/json.hpp>

namespace verger::controller {
namespace {

struct Freed {
  std::int64_t bytes = 0;
  bool in_part = false;  ///< what was freed before an interruption is not in it
};

std::map<std::string, Freed> reported_by_node(const RunState& run) {
  std::map<std::string, Freed> out;
  for (const auto& stage : run.plan->stages) {
    for (const auto& group : stage.groups) {
      for (const auto& planned : group) {
        const auto& step = run.steps.at(planned.id);
        const auto saved = step.result->find("space_saved");
        if (step.status == StepStatus::kDone && saved != step.result->end() &&
            saved->is_number_integer()) {
          auto& freed = out[planned.node];
          freed.bytes += saved->get<std::int64_t>();
          freed.in_part = freed.in_part || was_interrupted(step);
        }
      }
    }
  }
  return out;
}

}  // namespace

std::map<std::string, std::int64_t> freed_by_node(const RunState& run) {
  std::map<std::string, std::int64_t> out;
  for (const auto& [node, freed] : reported_by_node(run)) {
    if (!freed.in_part) {
      out[node] = freed.bytes;
    }
  }
  return out;
}

std::optional<std::int64_t> freed_bytes(const RunState& run) {
  std::optional<std::int64_t> sum;
  for (const auto& [node, freed] : reported_by_node(run)) {
    if (freed.in_part) {
      return std::nullopt;
    }
    sum = sum.value_or(0) + freed.bytes;
  }
  return sum;
}

}  // namespace verger::controller
