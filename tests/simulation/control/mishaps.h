#pragma once

#include <string>
#include <vector>

#include "tests/simulation/control/judge.h"
#include "tests/simulation/full/faults.h"

namespace verger::sim {

/// Chooses for one run which kinds of faults there are, makes them happen, and counts those that
/// took effect.
class Mishaps {
 public:
  /// `brief`: few kinds, one close after the other.
  Mishaps(Site& site, Judge& judge, std::uint64_t seed, const Scenario& scenario);

  /// From now on, for a time of its own choice.
  void begin();
  /// Everything is whole again.
  void heal();
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] FaultTally tally() const;
  [[nodiscard]] std::string describe() const;

  /// An operator requests the run to be paused.
  std::function<void()> pause_run;

  /// At each failpoint that a program passes, and before each event.
  void failpoint(std::string_view name);
  void before_event();

 private:
  /// How near the next one is, and how much of what is sent gets lost. The longer a run, the rarer.
  struct Density {
    std::uint64_t events;      ///< a crash within so many
    std::uint64_t failpoints;  ///< the same at a failpoint
    std::uint64_t writes;      ///< and at a write of a journal
    unsigned least_lost;       ///< of thousand messages
    std::uint64_t first_within_ms;
  };
  static constexpr Density kLong{
      .events = 200, .failpoints = 6, .writes = 10, .least_lost = 10, .first_within_ms = 60'000};
  static constexpr Density kBrief{
      .events = 60, .failpoints = 3, .writes = 5, .least_lost = 150, .first_within_ms = 250};
  /// Nothing is wrong any longer, and what is down starts.
  void make_whole();
  /// While a stage is undone another node and its agent are dead, and nothing else is wrong.
  void begin_emergency(const std::string& stage);
  void end_when_over();
  /// Kinds that wait for their moment or take their time: longer than was chosen.
  void last_for(std::chrono::milliseconds duration);
  void wait_for_moment();
  bool provoke(const std::string& kind);
  void ail(Ailment what, const std::string& node, std::uint64_t longest_ms);
  void fill_disk(const std::string& node);
  void replace(const std::string& node);
  void bring_back(const std::string& node);
  void lose_reply(const std::string& node);
  void end_in_resigning(const std::string& node);
  void hold_up_another(const std::string& node);
  void pause_over_dead(const std::string& node);
  void be_down_for_days();
  void lose_report(const std::string& node);
  void choose();
  void choose_few();
  /// Some kinds need what not every site has.
  [[nodiscard]] bool can_happen(std::string_view kind) const;
  void next(std::uint64_t within_ms);
  void carry_out();
  void network(const std::string& kind);
  void intended(const std::string& step);
  void hold_operation();
  void cluster(const std::string& kind);
  void later(std::uint64_t longest_ms, std::function<void()> action);
  WriteFate write(const std::string& host, bool written);
  void crash(const std::string& host, bool power, std::string_view where);
  void count(const std::string& kind) { ++tally_[kind]; }
  std::string any_program();
  std::string any_node();
  std::string any_machine();

  Site& site_;
  Judge& judge_;
  testing::SimWorld& world_;
  SeededRandom random_;
  Density density_;
  FaultTally tally_;
  std::vector<std::string> kinds_;
  std::chrono::milliseconds mean_gap_{5'000};
  std::chrono::milliseconds duration_{0};
  bool over_ = true;
  int generation_ = 0;

  std::string failpoint_host_;
  std::uint64_t failpoint_countdown_ = 0;
  std::uint64_t event_countdown_ = 0;
  std::string write_host_;  ///< whose journal fails next
  std::uint64_t write_countdown_ = 0;
  bool crash_after_write_ = false;
  std::string full_disk_;
  std::uint64_t unknown_writes_ = 0;
  bool hold_next_operation_ = false;
  Monotonic quiet_at_{};     ///< nothing new after it
  Monotonic over_at_{};      ///< what lasts has ended
  Monotonic waits_until_{};  ///< what waits for its moment does so no longer
  /// Once each, when a step is intended, has its node scavenged, or asks it to resign.
  std::function<void(const std::string& node)> at_intent_;
  std::function<void(const std::string& node)> at_start_;
  std::function<void(const std::string& node)> at_resign_;
  bool loses_report_ = false;  ///< of the next scavenge that reaches its point
};

}  // namespace verger::sim
