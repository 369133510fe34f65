#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace verger::planner {

struct Operation;
struct Policy;

/// What is made anew on a node.
enum class HealPart : std::uint8_t {
  kExistenceFilter,  ///< of streams: a server finds none that is not in it
};
std::string_view to_string(HealPart part);
constexpr auto choices_of(HealPart) { return std::array{HealPart::kExistenceFilter}; }

/// Which nodes are healed, besides what every run has. Its fields are in heal_operation.cpp. Times
/// are milliseconds.
struct HealPolicy {
  /// Nodes with lost streams get a new filter, one after the other; the stages are in
  /// plan_heal.cpp.
  static const Operation& operation();

  HealPart part = HealPart::kExistenceFilter;
  /// Names with commas between; empty: those whose agents count lost streams.
  std::string nodes;
  std::int64_t heal_deadline_ms = std::int64_t{24} * 3'600'000;  ///< for one node
};

/// Of a policy for healing.
HealPolicy& heal_of(Policy& policy);
const HealPolicy& heal_of(const Policy& policy);

}  // namespace verger::planner
