#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace verger::planner {

struct Operation;
struct Policy;

/// What the new node is to the cluster.
enum class GrowthRole : std::uint8_t {
  kReadOnlyReplica,
  kVoter,  ///< in the place of one that is dead
};
std::string_view to_string(GrowthRole role);
constexpr auto choices_of(GrowthRole) {
  return std::array{GrowthRole::kReadOnlyReplica, GrowthRole::kVoter};
}

/// What an operator wants of a growth, besides what every run has. Its fields are in
/// growth_operation.cpp. Times are milliseconds.
struct GrowthPolicy {
  /// A new node, seeded from a backup; the stage is in plan_growth.cpp.
  static const Operation& operation();

  std::string name;   ///< of the new node; empty: "host:port" of its URL
  std::string node;   ///< URL of its node interface
  std::string agent;  ///< URL of its agent
  GrowthRole role = GrowthRole::kReadOnlyReplica;
  std::string replaces;           ///< the registered node whose place it takes; empty: none
  bool replaced_is_gone = false;  ///< an operator answers for it where its agent is silent
  std::string repository;         ///< its name at the new node's agent
  std::string generation = "latest";
  std::int32_t threads = 2;           ///< files copied in parallel
  std::int64_t bytes_per_second = 0;  ///< that the new node reads of the repository; 0: no limit
  /// For the restore, the start and the catching up together.
  std::int64_t join_deadline_ms = 86'400'000;
};

/// Of a policy for a growth.
GrowthPolicy& growth_of(Policy& policy);
const GrowthPolicy& growth_of(const Policy& policy);

}  // namespace verger::planner
