#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace verger::planner {

struct Operation;
struct Policy;

/// How the nodes are redacted.
enum class RedactionStrategy : std::uint8_t {
  kAuto,     ///< each while it runs, where its server offers that, else while it is stopped
  kOnline,   ///< each while it runs; there is no plan where one cannot be
  kOffline,  ///< each while it is stopped
};
std::string_view to_string(RedactionStrategy strategy);
constexpr auto choices_of(RedactionStrategy) {
  return std::array{RedactionStrategy::kAuto, RedactionStrategy::kOnline,
                    RedactionStrategy::kOffline};
}

/// Which events are blanked on all nodes of a cluster, besides what every run has. Its fields are
/// in redaction_operation.cpp. Times are milliseconds.
struct RedactionPolicy {
  /// The redaction of events on every node; the stages are in plan_redaction.cpp.
  static const Operation& operation();

  /// Of an erasure, one run at most: what is wrong with more can still be overseen.
  static constexpr std::size_t kMostEvents = 1'000;

  /// NUMBER@STREAM with commas between, or one a line: then lines that begin with # are skipped,
  /// and names may have commas.
  std::string events;
  bool metadata = false;  ///< the bytes of the events' metadata, too
  std::string reason;     ///< for the erasure report; who asked is the run's requester
  std::int64_t redact_deadline_ms = std::int64_t{2} * 24 * 3'600'000;  ///< for one node
  RedactionStrategy strategy = RedactionStrategy::kAuto;
  /// Servers from 24.10 on want a licence for switching chunk files; the operator has one.
  bool interface_licensed = false;
  bool heal_existence_filter = false;  ///< of a node that is stopped for it
  /// Name of a repository at the agents: a new full backup is made there once all nodes are
  /// redacted, and then those are deleted that may hold the data. Empty: none is deleted.
  std::string expire_backups;
};

/// Of a policy for a redaction.
RedactionPolicy& redaction_of(Policy& policy);
const RedactionPolicy& redaction_of(const Policy& policy);

/// The events of the text, each once, in its order.
std::vector<std::string> listed_events(std::string_view text);

}  // namespace verger::planner
