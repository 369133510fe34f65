#include "tests/simulation/full/simulation.h"

#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/base/mutation.h"
#include "tests/simulation/full/clients.h"
#include "tests/simulation/full/final_checks.h"
#include "tests/simulation/full/watcher.h"

namespace verger::sim {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

/// How long healthy programs may take, in virtual time.
constexpr auto kSettleLimit = seconds(30);
constexpr auto kStartLimit = minutes(2);
/// Less than any deadline of a step: a run that is helped only by that has hung.
constexpr auto kEndLimit = minutes(5);
/// A leader that was ordered to resign and came back may be put off and tried again before.
constexpr auto kLongWait = seconds(15);
constexpr auto kCatchUpLimit = minutes(2);

constexpr std::uint64_t kWaysSeed = 7'919'000'003;

constexpr std::array<std::string_view, 3> kBroken = {"reply-is-deed", "second-resign",
                                                     "repeat-after-crash"};

FaultInjector* failpoint_listener = nullptr;

/// Failpoints are global; each run has its own listener.
class FailpointScope {
 public:
  explicit FailpointScope(FaultInjector& injector) {
    failpoint_listener = &injector;
    set_failpoint_hook([](std::string_view name) { failpoint_listener->failpoint(name); });
  }
  ~FailpointScope() {
    set_failpoint_hook(nullptr);
    failpoint_listener = nullptr;
  }
  FailpointScope(const FailpointScope&) = delete;
  FailpointScope& operator=(const FailpointScope&) = delete;
};

class Simulation {
 public:
  explicit Simulation(const RunOptions& options)
      : options_(options),
        seeds_(options.seed),
        trace_(options.trace),
        world_(seeds_.next()),
        cluster_(world_, cluster_options(), trace_),
        watcher_(cluster_),
        person_(cluster_),
        writer_(cluster_, seeds_.next()),
        injector_(cluster_, seeds_.next()),
        failpoints_(injector_) {
    world_.before_event = [this] {
      injector_.before_event();
      watcher_.look();
    };
    world_.on_message = [this](const testing::SimMessage& message) {
      watcher_.message(message);
      trace(message);
    };
  }

  RunResult run() {
    cluster_.start();
    play();
    RunResult result;
    result.violations = watcher_.violations();
    result.faults = injector_.tally();
    result.faults["leader changed"] += watcher_.leader_changes();
    result.faults["power cut with loss of data"] += cluster_.power_cuts_with_loss;
    result.faults["chunk switched online"] += cluster_.online.switches;
    result.faults["call of a switch lost"] += cluster_.online.broken_before;
    result.faults["answer of a switch lost"] += cluster_.online.broken_after;
    result.chosen = injector_.describe();
    result.state = waiting_ ? "waiting" : watcher_.journal().run_state;
    result.reason = watcher_.journal().run_reason;
    result.trace_hash = trace_.hash();
    result.trace_lines = trace_.lines();
    result.events = world_.events();
    result.acknowledged_writes = writer_.acknowledged().size();
    result.duration = std::chrono::duration_cast<milliseconds>(world_.now());
    return result;
  }

 private:
  ClusterOptions cluster_options() {
    ClusterOptions options;
    options.seed = seeds_.next() % 1'000'000;
    options.start = static_cast<StartingPoint>(seeds_.below(kStartingPoints));
    options.executor.poll_interval = milliseconds(500);
    options.executor.permit_valid_for = milliseconds(10'000);
    options.policy.limits.election_settle_ms = 3'000;
    options.policy.limits.leader_hold_ms = kLeaderHold.count();
    options.policy.gates.disk_reserve_bytes = 1 << 20;
    // Clocks step by up to an hour here, again and again; the gate for them would end the test's
    // faults early by waiting for the end of them.
    options.policy.gates.clock_skew_limit_ms = std::int64_t{24} * 3'600'000;
    // Faults may stop one scavenge more often than an operator would let them.
    auto& scavenge = scavenge_of(options.policy);
    scavenge.scavenge_attempts = 20;
    // By numbers of its own, so that all other runs are what they were without it.
    SeededRandom ways(options_.seed + kWaysSeed);
    if (ways.below(5) == 0) {
      scavenge.strategy = planner::Strategy::kOnline;
      scavenge.threads = 1 + static_cast<std::int32_t>(ways.below(2));
      if (ways.below(4) == 0) {
        scavenge.leader = planner::LeaderRule::kInPlace;
      }
    }
    return options;
  }

  void play() {
    if (!world_.run_until([this] { return settled(); }, kSettleLimit)) {
      watcher_.violation("the cluster did not settle: " + describe_cluster());
      return;
    }
    writer_.begin();
    person_.begin();
    // In every fourth run the faults begin while the person still registers and plans.
    const bool early = options_.faults && seeds_.below(4) == 0;
    if (early) {
      begin_faults();
    }
    const auto started = [this] { return !person_.run().empty(); };
    if (!world_.run_until([&] { return started() || (early && injector_.over()); }, kStartLimit)) {
      watcher_.violation("no run started: " + person_.obstacle());
      return;
    }
    if (options_.faults && !early) {
      world_.run_for(milliseconds(seeds_.below(6000)));
      begin_faults();
    }
    world_.run_until([this] { return injector_.over(); }, minutes(5));
    cluster_.online.disturbed = false;
    injector_.heal();
    if (!world_.run_until(started, kStartLimit)) {
      watcher_.violation("no run started after healing: " + person_.obstacle());
      return;
    }
    if (!world_.run_until([this] { return ended() || waits_for_a_person(); }, kEndLimit)) {
      watcher_.violation("after healing the run does not end: " + describe_run());
      return;
    }
    finish();
  }

  void begin_faults() {
    cluster_.online.disturbed = true;
    injector_.begin();
  }

  void finish() {
    writer_.finish();
    if (!world_.run_until([this] { return writer_.finished() && caught_up(); }, kCatchUpLimit)) {
      watcher_.violation(writer_.finished() ? "the nodes do not catch up: " + describe_cluster()
                                            : "the writer does not get its last write done");
      return;
    }
    // The controller may be paused still.
    for (int attempt = 0; attempt < 3 && person_.run_view().empty(); ++attempt) {
      person_.ask_for_run();
      world_.run_until([this] { return !person_.run_view().empty(); }, seconds(10));
    }
    check_end(cluster_, watcher_, writer_, person_, options_.faults);
  }

  [[nodiscard]] bool settled() const {
    int leaders = 0;
    int followers = 0;
    for (const auto name : kNodes) {
      const auto* node = cluster_.node(name);
      leaders += node != nullptr && node->state() == api::NodeState::kLeader ? 1 : 0;
      followers += node != nullptr && node->state() == api::NodeState::kFollower ? 1 : 0;
    }
    return leaders == 1 && followers == 2 && cluster_.controller() != nullptr;
  }

  [[nodiscard]] bool ended() const { return !watcher_.journal().run_state.empty(); }

  /// The planned move is used up and the node leads again: nothing else may be done to it by
  /// itself. True once that has lasted.
  [[nodiscard]] bool waits_for_a_person() {
    if (world_.now() < look_at_run_at_) {
      return waiting_;
    }
    look_at_run_at_ = world_.now() + seconds(1);
    auto* controller = cluster_.controller();
    if (controller == nullptr || watcher_.leader().empty()) {
      waits_since_.reset();
      return false;
    }
    const auto run = controller->executor().find_run(person_.run());
    if (!run || (*run)->status != controller::RunStatus::kWaiting ||
        !(*run)->reason.ends_with(watcher_.leader() + ": it leads the cluster")) {
      waits_since_.reset();
      return false;
    }
    if (!waits_since_) {
      waits_since_ = world_.now();
    }
    waiting_ = world_.now() - *waits_since_ > kLongWait;
    return waiting_;
  }

  [[nodiscard]] bool caught_up() const {
    if (!settled()) {
      return false;
    }
    const auto first = cluster_.node(kNodes[0])->positions();
    return std::ranges::all_of(kNodes, [&](std::string_view name) {
      const auto positions = cluster_.node(name)->positions();
      return positions.writer == first.writer && positions.committed == first.committed;
    });
  }

  [[nodiscard]] std::string describe_cluster() const {
    std::string text;
    for (const auto name : kNodes) {
      const auto* node = cluster_.node(name);
      text += node == nullptr
                  ? fmt::format("{} is down; ", name)
                  : fmt::format("{} {} writer {} committed {} epoch {}; ", name,
                                api::to_string(node->state()), node->positions().writer.value(),
                                node->positions().committed.value(),
                                node->positions().epoch_number.value());
    }
    if (cluster_.failed_starts > 0) {
      text += fmt::format("{} failed starts, last {}", cluster_.failed_starts,
                          cluster_.last_failed_start);
    }
    return text;
  }

  [[nodiscard]] std::string describe_run() const {
    auto* controller = cluster_.controller();
    if (controller == nullptr) {
      return "the controller is down; " + describe_cluster();
    }
    const auto run = controller->executor().find_run(person_.run());
    if (!run) {
      return run.error().message;
    }
    auto text = fmt::format("{} {}", controller::to_string((*run)->status), (*run)->reason);
    for (const auto& [id, step] : (*run)->steps) {
      if (step.status != controller::StepStatus::kPending &&
          step.status != controller::StepStatus::kDone) {
        text += fmt::format("; {} {} {}", id, controller::to_string(step.status), step.reason);
      }
    }
    return text + "; " + describe_cluster();
  }

  void trace(const testing::SimMessage& message) {
    using Kind = testing::SimMessage::Kind;
    switch (message.kind) {
      case Kind::kRequest:
        return trace_.add(
            world_.now(), message.to,
            fmt::format("{} {} from {}", message.method, message.target, message.from));
      case Kind::kResponse:
        return trace_.add(
            world_.now(), message.to,
            fmt::format("{} from {} for {}", message.status, message.from, message.target));
      case Kind::kFrame:
        return trace_.add(world_.now(), message.to,
                          fmt::format("frame of {} bytes from {}", message.size, message.from));
    }
  }

  const RunOptions& options_;
  SeededRandom seeds_;
  Trace trace_;
  testing::SimWorld world_;
  Cluster cluster_;
  Watcher watcher_;
  Person person_;
  Writer writer_;
  FaultInjector injector_;
  FailpointScope failpoints_;
  Monotonic look_at_run_at_{};
  std::optional<Monotonic> waits_since_;
  bool waiting_ = false;
};

}  // namespace

std::vector<std::string_view> broken_builds() { return {kBroken.begin(), kBroken.end()}; }

RunResult simulate(const RunOptions& options) {
  set_mutation(options.broken);
  return Simulation(options).run();
}

void Summary::add(const RunResult& result) {
  ++runs;
  violations += result.violations.size();
  for (const auto& [kind, count] : result.faults) {
    faults[kind] += count;
  }
  for (const auto& [row, count] : result.rows) {
    rows[row] += count;
  }
  ++outcomes[result.state.empty() ? "no end" : result.state];
  events += result.events;
  acknowledged_writes += result.acknowledged_writes;
}

void Summary::print(std::ostream& out) const {
  out << "faults that took effect:\n";
  std::uint64_t failpoints = 0;
  for (const auto& [kind, count] : faults) {
    if (kind.starts_with("failpoint ")) {
      ++failpoints;
    } else {
      out << fmt::format("  {:<34} {:>10}\n", kind, count);
    }
  }
  if (failpoints > 0) {
    out << fmt::format("  crashes at {} different failpoints\n", failpoints);
  }
  if (!rows.empty()) {
    out << "rows of the tournament that were met:\n";
    for (const auto& [row, count] : rows) {
      out << fmt::format("  {:<38} {:>6}\n", row, count);
    }
  }
  out << "runs ended:";
  for (const auto& [state, count] : outcomes) {
    out << fmt::format(" {} {}", state, count);
  }
  out << fmt::format("; {} events, {} acknowledged writes\n", events, acknowledged_writes);
}

}  // namespace verger::sim
