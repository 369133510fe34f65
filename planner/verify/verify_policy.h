#pragma once

#include <cstdint>
#include <string>

namespace verger::planner {

struct Operation;
struct Policy;

/// How the files of running nodes are verified, besides what every run has. Its fields are in
/// verify_operation.cpp. Times are milliseconds.
struct VerifyPolicy {
  /// A look for damage in chunks, index and filters of running nodes; the stages are in
  /// plan_verify.cpp.
  static const Operation& operation();

  std::string nodes;                   ///< names with commas between; empty: all with an agent
  std::int32_t throttle_percent = 50;  ///< share of the time spent working
  std::int64_t rate_bytes = 0;         ///< read a second at most; 0: no limit
  std::int64_t node_deadline_ms = std::int64_t{7} * 24 * 3'600'000;
};

/// Of a policy for verifications.
VerifyPolicy& verify_of(Policy& policy);
const VerifyPolicy& verify_of(const Policy& policy);

}  // namespace verger::planner
