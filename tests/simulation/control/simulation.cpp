#include "tests/simulation/control/simulation.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/base/mutation.h"
#include "tests/simulation/control/mishaps.h"
#include "tests/simulation/control/person.h"

namespace verger::sim {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

/// How long healthy programs may take, in virtual time. Windows of the scenarios are minutes.
constexpr auto kSettleLimit = minutes(2);
constexpr auto kStartLimit = minutes(20);
/// A schedule's time, and the windows that may be closed then.
constexpr auto kScheduleLimit = minutes(14);
constexpr auto kEndLimit = minutes(40);
/// A leader that was ordered to resign and came back may be put off and tried again before.
constexpr auto kLongWait = seconds(60);
/// Longer than any of them last.
constexpr auto kMishapsLimit = std::chrono::hours(80);
/// A controller that is down when a schedule is due went down so long before at most.
constexpr auto kDownBefore = milliseconds(20'000);
constexpr auto kPersonLooks = seconds(30);

constexpr std::array<std::string_view, 11> kBroken = {
    "reply-is-deed",   "second-resign",         "repeat-after-crash", "hours-ignored",
    "errored-is-done", "disk-ignored",          "clocks-ignored",     "agents-answer-ignored",
    "permit-ignored",  "undo-needs-all-agents", "points-unread"};

Mishaps* failpoint_listener = nullptr;

class FailpointScope {
 public:
  explicit FailpointScope(Mishaps& mishaps) {
    failpoint_listener = &mishaps;
    set_failpoint_hook([](std::string_view name) { failpoint_listener->failpoint(name); });
  }
  ~FailpointScope() {
    set_failpoint_hook(nullptr);
    failpoint_listener = nullptr;
  }
  FailpointScope(const FailpointScope&) = delete;
  FailpointScope& operator=(const FailpointScope&) = delete;
};

Scenario scenario_of(const RunOptions& options) {
  auto scenario = make_scenario(options.seed);
  if (!options.faults) {
    scenario.intents.clear();
  }
  return scenario;
}

class ControlSimulation {
 public:
  explicit ControlSimulation(const RunOptions& options)
      : options_(options),
        scenario_(scenario_of(options)),
        seeds_(options.seed + 1'000'003),
        trace_(options.trace),
        world_(seeds_.next()),
        site_(world_, scenario_.site, trace_),
        judge_(site_, scenario_),
        person_(site_, scenario_),
        mishaps_(site_, judge_, seeds_.next(), scenario_),
        failpoints_(mishaps_) {
    world_.start = scenario_.start;
    world_.faults.max_delay = std::chrono::microseconds(20'000);
    mishaps_.pause_run = [this] {
      if (!person_.run().empty() && !ended()) {
        person_.send({.path = "run", .what = "pause"});
      }
    };
    world_.before_event = [this] { mishaps_.before_event(); };
    world_.on_message = [this](const testing::SimMessage& message) { trace(message); };
  }

  RunResult run() {
    site_.start();
    play();
    RunResult result;
    result.violations = judge_.violations();
    result.faults = mishaps_.tally();
    result.rows = judge_.tournament().met();
    result.chosen = fmt::format("{}; {}", scenario_.describe(), mishaps_.describe());
    result.state = waiting_ ? "waiting" : judge_.run_state();
    result.reason = judge_.run_reason();
    result.trace_hash = trace_.hash();
    result.trace_lines = trace_.lines();
    result.events = world_.events();
    result.duration = std::chrono::duration_cast<milliseconds>(world_.now());
    return result;
  }

 private:
  void play() {
    if (!world_.run_until([this] { return site_.model().settled(); }, kSettleLimit)) {
      judge_.violation("the cluster did not settle");
      return;
    }
    person_.on_refused([this](const std::string& body) { judge_.tournament().refused(body); });
    person_.begin();
    watch_due_time();
    const bool early = options_.faults && seeds_.below(scenario_.brief ? 2 : 6) == 0;
    if (early) {
      mishaps_.begin();
    }
    const auto started = [this] { return !person_.run().empty(); };
    const auto begun = [&] { return started() || (early && mishaps_.over()); };
    if (!world_.run_until(begun, scenario_.scheduled ? kScheduleLimit : kStartLimit) &&
        scenario_.scheduled) {
      if (!scenario_.clock_changes && !early) {
        judge_.violation("the schedule does not start a run");
      }
      if (!started() && in_repeated_hour()) {
        judge_.tournament().due_hour_repeated();
      }
      person_.start_by_hand();
    }
    if (!world_.run_until(begun, kStartLimit)) {
      judge_.violation("no run started: " + person_.obstacle());
      return;
    }
    send_intents();
    if (options_.faults && !early) {
      world_.run_for(milliseconds(seeds_.below(scenario_.brief ? 1'500 : 40'000)));
      mishaps_.begin();
    }
    world_.run_until([this] { return mishaps_.over() || ended(); }, kMishapsLimit);
    mishaps_.heal();
    if (!world_.run_until(started, minutes(3))) {
      person_.start_by_hand();  // its time was missed
    }
    if (!world_.run_until(started, kStartLimit)) {
      judge_.violation("no run started after healing: " + person_.obstacle());
      return;
    }
    if (!world_.run_until([this] { return settled(); }, kEndLimit)) {
      judge_.violation("after healing the run does not end: " + describe_run());
      return;
    }
    judge_.at_the_end();
  }

  void watch_due_time() {
    if (!scenario_.due_after) {
      return;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(*scenario_.due_after - world_.now());
    if (scenario_.down_when_due && options_.faults && left > kDownBefore) {
      world_.schedule(
          left - milliseconds(seeds_.below(static_cast<std::uint64_t>(kDownBefore.count()))),
          [this] {
            site_.crash("c", /*power=*/false, kDownBefore + milliseconds(seeds_.below(60'000)));
          });
    }
    if (left > milliseconds(0)) {
      world_.schedule(left, [this] { judge_.tournament().due(); });
    }
  }

  /// In the second of two equal hours, for all the time that a schedule's start may take.
  [[nodiscard]] bool in_repeated_hour() const {
    const auto& zone = WallTime::of(scenario_.zone);
    const auto repeated = [&zone](Ticks now) {
      const auto before = zone.at(Ticks(now.value() - 3'600 * kTicksPerSecond));
      return before.minute == zone.at(now).minute;
    };
    return repeated(scenario_.start) && repeated(world_.wall());
  }

  void send_intents() {
    if (!scenario_.changed_yaml.empty() && options_.faults) {
      world_.schedule(scenario_.change_after, [this] {
        if (!ended()) {
          person_.change_policy(scenario_.changed_yaml);
        }
      });
    }
    for (const auto& intent : scenario_.intents) {
      world_.schedule(intent.after, [this, &intent] {
        if (!person_.run().empty() && !ended()) {
          trace_.add(world_.now(), "p", intent.what);
          person_.send(intent);
        }
      });
    }
  }

  [[nodiscard]] bool ended() const { return !judge_.run_state().empty(); }

  /// Ended, or waiting for what only a person can do. What a person paused resumes.
  bool settled() {
    if (ended()) {
      return true;
    }
    if (world_.now() < look_at_) {
      return false;
    }
    look_at_ = world_.now() + seconds(5);
    judge_.look();
    if (world_.now() >= person_looks_at_) {
      person_looks_at_ = world_.now() + kPersonLooks;
      if (judge_.cluster_paused()) {
        person_.send({.path = "", .what = "resume"});
      } else if (judge_.paused()) {
        person_.send({.path = "run", .what = "resume"});
      } else if (waits_for_lack_of_history()) {
        person_.send({.path = "run",
                      .what = "resume",
                      .body = R"({"ignore_hours":true,"reason":"the first run tells how long"})"});
      }
    }
    return waits_for_a_person();
  }

  /// What cannot be stopped does not begin before a window's end while it is not known how long it
  /// takes: that ends by a person's decision alone.
  [[nodiscard]] bool waits_for_lack_of_history() const {
    auto* controller = site_.acting_controller();
    if (controller == nullptr) {
      return false;
    }
    const auto run = controller->executor().find_run(person_.run());
    return run && (*run)->status == controller::RunStatus::kWaiting &&
           (*run)->reason.find("how long it takes is not known") != std::string::npos;
  }

  bool waits_for_a_person() {
    auto* controller = site_.acting_controller();
    const auto leader = site_.model().leader();
    if (controller == nullptr || leader.empty()) {
      waits_since_.reset();
      return false;
    }
    const auto run = controller->executor().find_run(person_.run());
    // Its one planned move is used up and the node leads again.
    if (!run || (*run)->status != controller::RunStatus::kWaiting ||
        !(*run)->reason.ends_with(leader + ": it leads the cluster")) {
      waits_since_.reset();
      return false;
    }
    if (!waits_since_) {
      waits_since_ = world_.now();
    }
    waiting_ = world_.now() - *waits_since_ > kLongWait;
    return waiting_;
  }

  [[nodiscard]] std::string describe_run() const {
    auto* controller = site_.acting_controller();
    if (controller == nullptr) {
      return "no controller acts";
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
    return text;
  }

  void trace(const testing::SimMessage& message) {
    const bool request = message.kind == testing::SimMessage::Kind::kRequest;
    trace_.add(world_.now(), message.to, message.target);
    if (trace_.printing()) {
      trace_.note(
          world_.now(), message.to,
          request ? fmt::format("{} {} from {}", message.method, message.target, message.from)
                  : fmt::format("{} from {} for {}", message.status, message.from, message.target));
    }
  }

  const RunOptions& options_;
  Scenario scenario_;
  SeededRandom seeds_;
  Trace trace_;
  testing::SimWorld world_;
  Site site_;
  Judge judge_;
  Operator person_;
  Mishaps mishaps_;
  FailpointScope failpoints_;
  Monotonic look_at_{};
  Monotonic person_looks_at_{};
  std::optional<Monotonic> waits_since_;
  bool waiting_ = false;
};

}  // namespace

std::vector<std::string_view> broken_control_builds() { return {kBroken.begin(), kBroken.end()}; }

RunResult simulate_control(const RunOptions& options) {
  set_mutation(options.broken);
  return ControlSimulation(options).run();
}

}  // namespace verger::sim
