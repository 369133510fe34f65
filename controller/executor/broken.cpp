#include "controller/executor/broken.h"

#include <string>

#include "controller/executor/mutations.h"

namespace verger::controller {
namespace {

std::string& broken() {
  static std::string name;
  return name;
}

}  // namespace

void break_on_purpose(std::string_view name) { broken() = name; }

bool is_gate_ignored(std::string_view gate) {
  const std::string_view name = broken();
  return kMayBeBroken && name.starts_with(gate) && name.substr(gate.size()) == "-ignored";
}

bool is_broken(std::string_view name) { return kMayBeBroken && broken() == name; }

}  // namespace verger::controller
