#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "planner/json.h"
#include "planner/operation_policy.h"

namespace verger::planner {

/// What becomes of work that can be stopped and continued later.
enum class PauseRule : std::uint8_t { kStop, kLeave };
std::string_view to_string(PauseRule rule);
constexpr auto choices_of(PauseRule) { return std::array{PauseRule::kStop, PauseRule::kLeave}; }

/// An instant query of a Prometheus server that holds work back. Bounds are decimal numbers as they
/// were written ("0.5"), an empty one is none; every value of the answer must keep to both.
struct QueryBlocker {
  std::string name;   ///< "write-latency"
  std::string url;    ///< "https://prometheus.example.com:9090"
  std::string query;  ///< PromQL
  std::string at_least;
  std::string at_most;
  friend bool operator==(const QueryBlocker&, const QueryBlocker&) = default;
};

/// Deadlines, attempts, settle and hold times of a run of any operation. Times are
/// milliseconds.
struct RunLimits {
  /// Neither the operation's work nor a resignation begins sooner after an election that the run
  /// did not make: what caused it may do so again.
  std::int64_t election_settle_ms = 180'000;
  /// The same after the run's own move of the leader, where that is less.
  std::int64_t move_settle_ms = 10'000;
  std::int64_t leader_hold_ms = 5'000;  ///< a move counts once it held this long
  std::int32_t resign_attempts = 3;
  std::int64_t move_deadline_ms = 600'000;
  std::int64_t undo_deadline_ms = 300'000;
  /// For a server's stop, and again until it answers after its start.
  std::int64_t service_deadline_ms = 3'600'000;
  /// An alert is raised for a gate closed for longer; 0: each gate has its own time
  /// (planner/gates.h).
  std::int64_t gate_deadline_ms = 0;
  /// After a planned move of the leader, projections and persistent subscriptions that ran before
  /// it are looked for; this long they may take to come back, ...
  bool check_server_work = true;
  std::int64_t server_work_back_ms = 120'000;
  /// ... this long the run waits for those that have not, ...
  std::int64_t server_work_wait_ms = 3'600'000;
  /// ... and they are started again, once.
  bool restart_server_work = false;

  [[nodiscard]] std::int64_t own_move_settle_ms() const {
    return move_settle_ms < election_settle_ms ? move_settle_ms : election_settle_ms;
  }
};

/// Limits of gates (planner/gates.h), and what else holds work back.
struct GateLimits {
  std::int64_t lag_limit_bytes = std::int64_t{16} << 20U;
  /// Disk that must stay free beyond the largest rewrite.
  std::int64_t disk_reserve_bytes = std::int64_t{256} << 20U;
  std::int64_t clock_skew_limit_ms = 60'000;  ///< between a node's clock and the controller's
  /// A certificate must be valid for so long after the expected end of the step. No longer than an
  /// hour by itself: certificates that are renewed by a machine may live for a day only.
  std::int64_t certificate_margin_ms = 3'600'000;
  std::vector<QueryBlocker> queries;
};

/// What becomes of the operation's work when the run is paused, ...
struct PauseRules {
  PauseRule on_pause = PauseRule::kStop;
  /// ... and at the start of a deny window, or at the end of an allow window.
  PauseRule on_close = PauseRule::kStop;
};

/// What is wanted of a cluster: what every operation has, and what is the operation's own. All of
/// it is part of the plan's hash.
struct Policy {
  std::string name = "ad-hoc";
  RunLimits limits;
  GateLimits gates;
  PauseRules pauses;
  OperationPolicy operation;
};

/// {"name", "operation": NAME, NAME: its fields by name}. In plans, hashes and the journal.
Json to_json(const Policy& policy);
/// Fields that are missing have their defaults, members that are none are ignored. An operation
/// that is not known here is kept as it is (UnknownOperation). Errors: kInvalidArgument, naming the
/// member.
Result<Policy> parse_policy(const Json& value);

}  // namespace verger::planner
