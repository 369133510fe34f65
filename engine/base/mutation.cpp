#include "engine/base/mutation.h"

#include <string>

namespace verger {
namespace {

std::string& mutation() {
  static std::string name;
  return name;
}

}  // namespace

void set_mutation(std::string_view name) { mutation() = name; }

#ifdef VERGER_FAILPOINTS
bool is_mutated(std::string_view name) { return mutation() == name; }

bool is_mutated(std::string_view what, std::string_view how) {
  const std::string_view name = mutation();
  return name.size() == what.size() + how.size() && name.starts_with(what) && name.ends_with(how);
}
#endif

}  // namespace verger
