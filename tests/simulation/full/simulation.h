#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/full/faults.h"

namespace verger::sim {

struct RunOptions {
  std::uint64_t seed = 1;
  /// Without them the run must end done.
  bool faults = true;
  /// One of broken_builds(), or empty.
  std::string broken{};
  std::ostream* trace = nullptr;
};

struct RunResult {
  std::vector<std::string> violations;
  FaultTally faults;
  FaultTally rows;     ///< of docs/tournament.md, how often each was met
  std::string chosen;  ///< the kinds of faults
  std::string state;   ///< of the verger run at the end: "done", "failed", "waiting"
  std::string reason;
  std::uint64_t trace_hash = 0;
  std::uint64_t trace_lines = 0;
  std::uint64_t events = 0;
  std::uint64_t acknowledged_writes = 0;
  std::chrono::milliseconds duration{0};  ///< virtual
};

/// Names of the ways the controller can be broken on purpose.
std::vector<std::string_view> broken_builds();

/// One cluster, from its first start to the end of a rolling scavenge and the checks after it.
/// Everything that happens follows from the options. One thread at a time: failpoints are global.
RunResult simulate(const RunOptions& options);

/// What many runs showed.
struct Summary {
  std::uint64_t runs = 0;
  std::uint64_t violations = 0;
  FaultTally faults;
  FaultTally rows;
  std::map<std::string, std::uint64_t, std::less<>> outcomes;
  std::uint64_t events = 0;
  std::uint64_t acknowledged_writes = 0;
  void add(const RunResult& result);
  /// All but the last line of a report.
  void print(std::ostream& out) const;
};

}  // namespace verger::sim
