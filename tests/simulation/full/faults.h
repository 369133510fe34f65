#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/simulation/full/cluster.h"

namespace verger::sim {

/// How often each kind of fault took effect.
using FaultTally = std::map<std::string, std::uint64_t, std::less<>>;

/// Chooses for one run which kinds of faults there are and how often, and makes them happen. Each
/// run has only some kinds, so that each is also seen alone and in every company.
class FaultInjector {
 public:
  FaultInjector(Cluster& cluster, std::uint64_t seed);
  ~FaultInjector();

  /// From now on, for a time of its own choice.
  void begin();
  /// Everything is whole again: links, disks, clocks go right; what is down is started.
  void heal();
  [[nodiscard]] bool over() const { return over_; }
  /// What took effect so far.
  [[nodiscard]] FaultTally tally() const;
  /// What was chosen, for people.
  [[nodiscard]] std::string describe() const;

  /// Called at each failpoint a program passes, and before each event.
  void failpoint(std::string_view name);
  void before_event();

 private:
  struct Choice;
  void choose();
  void next_fault();
  void carry_out();
  void meddle(std::string_view kind, std::string_view node, std::string target);
  std::string_view any_program();
  std::string_view any_node();
  Power any_power();
  std::chrono::milliseconds any_pause();
  void crash(std::string_view host, Power power, std::string_view where);
  void arm_disk(std::string_view host);

  Cluster& cluster_;
  testing::SimWorld& world_;
  SeededRandom random_;
  FaultTally tally_;
  std::vector<std::string> kinds_;
  std::chrono::milliseconds mean_gap_{1000};
  std::chrono::milliseconds duration_{0};
  bool over_ = true;
  int generation_ = 0;

  /// A crash of that host at the failpoint passed so many times from now.
  std::string failpoint_host_;
  std::uint64_t failpoint_countdown_ = 0;
  /// A crash of any program at the event that many from now.
  std::uint64_t event_countdown_ = 0;
};

}  // namespace verger::sim
