#pragma once

#include <string_view>

namespace verger {

/// Ways to break the programs on purpose, so that a simulation can show that it would notice. One
/// at a time and global, as failpoints are; an empty name: none. What a name breaks stands where it
/// is looked for, with is_mutated(); the simulations list the names. Not while other threads work.
void set_mutation(std::string_view name);

#ifdef VERGER_FAILPOINTS
[[nodiscard]] bool is_mutated(std::string_view name);
/// Of a name in two parts, the first of which is data: the name of a gate, "-ignored".
[[nodiscard]] bool is_mutated(std::string_view what, std::string_view how);
#else
/// Without failpoints compiled in (releases) nothing can be broken.
[[nodiscard]] constexpr bool is_mutated(std::string_view /*name*/) { return false; }
[[nodiscard]] constexpr bool is_mutated(std::string_view /*what*/, std::string_view /*how*/) {
  return false;
}
#endif

}  // namespace verger
