#pragma once

#include <cstdint>
#include <string>

namespace verger::planner {

struct Operation;
struct Policy;

/// What an operator wants of a change of the number of voters, besides what every run has. Its
/// fields are in resize_operation.cpp. Lists are separated by commas. Times are milliseconds.
struct ResizePolicy {
  /// Two voters more, seeded from a backup, or two fewer; the stages are in plan_resize.cpp.
  static const Operation& operation();

  std::int32_t to = 0;            ///< voters afterwards
  std::string nodes;              ///< that join: URLs of their node interfaces, or NAME=URL
  std::string agents;             ///< URLs of their agents, in the same order
  std::string leaving;            ///< names of voters that leave; empty: such as do not lead
  bool leaving_are_gone = false;  ///< an operator answers for those whose agents are silent
  std::string repository;         ///< its name at the new nodes' agents
  std::string generation = "latest";
  std::int32_t threads = 2;            ///< files copied in parallel
  std::int64_t bytes_per_second = 0;   ///< that each new node reads of the repository; 0: no limit
  bool heal_existence_filter = false;  ///< of each member that is restarted
  /// For all of it: restoring, the restarts one after the other, catching up.
  std::int64_t resize_deadline_ms = 86'400'000;
};

/// Of a policy for a change of the number of voters.
ResizePolicy& resize_of(Policy& policy);
const ResizePolicy& resize_of(const Policy& policy);

}  // namespace verger::planner
