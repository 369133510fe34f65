#include "tests/simulation/control/scenario.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace verger::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr std::array<std::string_view, 12> kZones = {
    "UTC",           "Europe/Berlin",    "America/New_York",  "Australia/Lord_Howe",
    "Asia/Kolkata",  "America/St_Johns", "Africa/Casablanca", "Pacific/Chatham",
    "Europe/London", "America/Santiago", "Asia/Kathmandu",    "Africa/Cairo"};
constexpr std::int64_t kFirstStart = 1'706'000'000;  // January 2024
constexpr std::int64_t kYears = 11LL * 365 * 86'400;
constexpr int kMinutesOfADay = 24 * 60;

planner::Policy base_policy(Random& random) {
  planner::Policy policy;
  auto& scavenge = scavenge_of(policy);
  policy.limits.election_settle_ms = 6'000;
  policy.limits.leader_hold_ms = 4'000;
  policy.gates.lag_limit_bytes = 1'200;
  policy.gates.disk_reserve_bytes = 1 << 20;
  scavenge.compare_digests = random.below(8) != 0;
  // Faults may stop one scavenge more often than an operator would let them.
  scavenge.scavenge_attempts = 30;
  switch (random.below(8)) {
    case 0:
      scavenge.strategy = planner::Strategy::kConcurrent;
      break;
    case 1:
      scavenge.strategy = planner::Strategy::kFollowersOnly;
      break;
    case 2:
      scavenge.leader = planner::LeaderRule::kInPlace;
      break;
    default:
      break;
  }
  policy.pauses.on_pause =
      random.below(3) == 0 ? planner::PauseRule::kLeave : planner::PauseRule::kStop;
  policy.pauses.on_close =
      random.below(4) == 0 ? planner::PauseRule::kLeave : planner::PauseRule::kStop;
  scavenge.foreign =
      random.below(2) == 0 ? planner::ForeignRule::kAdopt : planner::ForeignRule::kWait;
  return policy;
}

/// One run of so many is a long one.
constexpr std::uint64_t kLongOneIn = 24;
/// And in one of so many a node is down for days.
constexpr std::uint64_t kDaysOneIn = 2'000;
/// In one of so many what has just begun is looked at a tenth of a second later, as outside; and
/// in all without agents, where looks are all that shows what became of it.
constexpr std::uint64_t kSoonOneIn = 8;
/// Of the clusters where that can be, in one of so many a node is dead during an undo.
constexpr std::uint64_t kEmergencyOneIn = 3;
/// Of the clusters without agents, one in so many shows its points, and loses a report.
constexpr std::uint64_t kUnreportedOneIn = 2;

std::size_t voters_of(bool brief, Random& random) {
  const auto kind = random.below(20);
  if (brief) {
    return kind < 17 ? 1 : 3;
  }
  return kind < 15 ? 3 : kind < 18 ? 5 : kind < 19 ? 4 : 1;
}

void choose_cluster(SiteOptions& site, bool brief, Random& random) {
  const auto voters = voters_of(brief, random);
  for (std::size_t i = 1; i <= voters; ++i) {
    site.model.voters.push_back(fmt::format("n{}", i));
  }
  if (random.below(brief && voters == 1 ? 4 : 10) == 0) {
    site.model.replicas.push_back(fmt::format("n{}", voters + 1));
  }
  site.model.version = random.below(4) == 0 ? "24.10.4" : "24.6.0";
  site.agents = random.below(10) != 0;
  site.sqlite = random.below(brief ? 80 : 40) == 0;
  site.second_controller = !site.sqlite && site.agents && random.below(4) == 0;
}

void make_brief(SiteOptions& site, Random& random) {
  site.model.scavenge_least = milliseconds(1'000);
  site.model.scavenge_most = milliseconds(5'000);
  if (site.model.voters.size() > 1 && random.below(2) == 0) {
    scavenge_of(site.policy).strategy = planner::Strategy::kFollowersOnly;
  }
}

/// A schedule is due in the first of two equal hours only, and at the end of a gap.
bool clock_changes_near(const WallTime& zone, Ticks start) {
  constexpr std::int64_t kHour = 3'600 * kTicksPerSecond;
  const auto before = zone.at(Ticks(start.value() - 3 * kHour));
  const auto after = zone.at(Ticks(start.value() + kHour));
  return (after.day - before.day) * kMinutesOfADay + after.minute - before.minute != 4 * 60;
}

/// Some minutes around `minute`, so that the run meets its beginning or end.
DenyWindow window_near(const std::string& zone, int minute, int weekday, Random& random) {
  DenyWindow window{.zone = zone};
  const auto begins = static_cast<int>(random.below(6)) - 2;  // already open, or in some minutes
  const auto lasts = 1 + static_cast<int>(random.below(5));
  window.from = (minute + begins + kMinutesOfADay) % kMinutesOfADay;
  window.to = (window.from + lasts) % kMinutesOfADay;
  if (random.below(3) == 0) {
    window.days = 1U << static_cast<unsigned>(weekday);
  }
  return window;
}

std::string yaml_of(const Scenario& scenario, const std::string& schedule,
                    const std::vector<DenyWindow>& deny) {
  auto yaml = "name: hours\nclusters: [sim]\n" + schedule;
  if (!deny.empty()) {
    yaml += "windows:\n  deny:\n";
    for (const auto& window : deny) {
      yaml += "    - " + window.yaml() + "\n";
    }
  }
  return yaml +
         fmt::format("on_close: {}\n", planner::to_string(scenario.site.policy.pauses.on_close));
}

/// With its schedule, and how it is changed while the run is under way.
void write_policy(Scenario& scenario, const std::string& zone, Random& random) {
  const auto wall = WallTime::of(zone).at(scenario.start);
  std::string schedule;
  const auto ahead = 2 + static_cast<int>(random.below(2));  // minutes
  if (scenario.scheduled) {
    const auto due = (wall.minute + ahead) % kMinutesOfADay;
    scenario.due_again = !scenario.clock_changes && random.below(4) == 0;
    const auto cron = scenario.due_again ? std::string("*/2 * * * *")
                                         : fmt::format("{} {} * * *", due % 60, due / 60);
    schedule =
        fmt::format("schedule:\n  - {{cron: \"{}\", zone: {}}}\ncatch_up: {}\n", cron, zone,
                    scenario.deny.empty() && random.below(2) == 0 ? "run-if-in-window" : "run");
    if (!scenario.clock_changes && !scenario.due_again) {
      const auto into_minute = unix_of_ticks(scenario.start) % 60;
      scenario.due_after = seconds(std::int64_t{ahead} * 60 - into_minute);
      scenario.down_when_due = random.below(3) == 0;
    }
  }
  scenario.policy_yaml = yaml_of(scenario, schedule, scenario.deny);
  if (random.below(3) == 0) {
    if (random.below(4) != 0) {
      const auto minute = wall.minute + (scenario.scheduled ? ahead : 0);
      DenyWindow window{.zone = zone};
      window.from = (minute + kMinutesOfADay - 1) % kMinutesOfADay;
      window.to = (minute + 2 + static_cast<int>(random.below(4))) % kMinutesOfADay;
      scenario.changed_deny.push_back(std::move(window));
    }
    scenario.changed_yaml = yaml_of(scenario, schedule, scenario.changed_deny);
    scenario.change_after = milliseconds(500 + random.below(scenario.brief ? 5'000 : 30'000));
  }
}

/// Three voters of which one is down for days: nothing else that takes time.
void make_days(Scenario& scenario) {
  auto& site = scenario.site;
  scenario.days = true;
  scenario.brief = true;
  site.model.voters = {"n1", "n2", "n3"};
  site.model.replicas.clear();
  site.agents = true;
  site.sqlite = false;
  scavenge_of(site.policy).strategy = planner::Strategy::kRolling;
  site.executor.poll_interval = milliseconds(60'000);
  site.model.tick = milliseconds(2'000);
  scenario.deny.clear();
  scenario.changed_yaml.clear();
  scenario.policy_yaml.clear();
  scenario.intents.clear();
  scenario.scheduled = scenario.down_when_due = scenario.due_again = false;
}

}  // namespace

bool Scenario::denied(Ticks time) const {
  return std::ranges::any_of(deny, [time](const DenyWindow& window) { return window.holds(time); });
}

bool Scenario::denied_by_change(Ticks time) const {
  return std::ranges::any_of(changed_deny,
                             [time](const DenyWindow& window) { return window.holds(time); });
}

std::string Scenario::describe() const {
  const auto& scavenge = scavenge_of(site.policy);
  std::string text = fmt::format(
      "{}{} voters, {} replicas, {}, {}{}{}, {}, {}, from {}", brief ? "brief, " : "",
      site.model.voters.size(), site.model.replicas.size(), site.model.version,
      site.agents ? "agents" : "no agents", site.sqlite ? ", SQLite" : "",
      site.second_controller ? ", two controllers" : "", planner::to_string(scavenge.strategy),
      planner::to_string(scavenge.leader), format_ticks(start));
  for (const auto& window : deny) {
    text += "; deny " + window.yaml();
  }
  for (const auto& intent : intents) {
    text += fmt::format("; {} {} after {} ms", intent.what, intent.path.empty() ? "cluster" : "run",
                        intent.after.count());
  }
  return text;
}

Scenario make_scenario(std::uint64_t seed) {
  SeededRandom random(seed * 7'919 + 1);
  Scenario scenario;
  auto& site = scenario.site;
  scenario.brief = random.below(kLongOneIn) != 0;
  site.seed = random.below(1'000'000'000);
  choose_cluster(site, scenario.brief, random);
  site.policy = base_policy(random);
  // Each look is some ten messages: most runs look no oftener than they must.
  site.executor.poll_interval = milliseconds(random.below(4) == 0 ? 2'500 : 6'000);
  if (site.agents && seed % kSoonOneIn != 1) {
    site.executor.shortest_poll = site.executor.poll_interval;
  }
  site.executor.permit_valid_for = seconds(10);
  site.executor.progress_interval = milliseconds(15'000);

  const std::string zone(kZones.at(random.below(kZones.size())));
  auto at = kFirstStart + static_cast<std::int64_t>(random.below(kYears));
  const auto* transition = WallTime::of(zone).any_transition(random);
  if (transition != nullptr && random.below(2) == 0) {
    at = *transition - 400 + static_cast<std::int64_t>(random.below(500));
    // A repeated hour: half of these runs begin in its second half.
    at += random.below(2) == 0 ? 0 : 3'000;
  }
  scenario.start = ticks_of_unix(at);
  const auto wall = WallTime::of(zone).at(scenario.start);
  scenario.zone = zone;
  if (site.model.voters.size() == 1) {
    scavenge_of(site.policy).strategy = planner::Strategy::kRolling;
  }
  if (scenario.brief) {
    make_brief(site, random);
  }
  scenario.clock_changes = clock_changes_near(WallTime::of(zone), scenario.start);
  const auto windows = random.below(scenario.brief ? 4 : 2) == 0 ? 1U + random.below(2) : 0U;
  for (std::uint64_t i = 0; i < windows; ++i) {
    scenario.deny.push_back(window_near(zone, wall.minute, wall.weekday, random));
  }
  scenario.scheduled = random.below(scenario.brief ? 12 : 4) == 0 ||
                       (scenario.clock_changes && random.below(6) == 0);
  if (scenario.scheduled || !scenario.deny.empty()) {
    write_policy(scenario, zone, random);
  }
  for (auto intents = random.below(5) < 3 ? 0U : 1U + random.below(3); intents > 0; --intents) {
    Intent intent;
    intent.after = milliseconds(500 + random.below(scenario.brief ? 10'000 : 60'000));
    switch (random.below(8)) {
      case 0:
        intent = {intent.after, "run", "cancel"};
        break;
      case 1:
        intent = {intent.after, "run", "skip",
                  fmt::format(R"({{"node":"{}"}})",
                              site.model.voters.at(random.below(site.model.voters.size())))};
        break;
      case 2:
        intent = {intent.after, "", "pause"};
        break;
      case 3:
        intent = {intent.after, "run", "pause", R"({"mode":"now"})"};
        break;
      case 4:
        intent = {intent.after, "run", "pause", R"({"mode":"drain"})"};
        break;
      default:
        intent = {intent.after, "run", random.below(2) == 0 ? "pause" : "resume"};
        break;
    }
    scenario.intents.push_back(std::move(intent));
  }
  std::ranges::sort(scenario.intents, {}, &Intent::after);
  site.tls = random.below(4) == 0;
  if (random.below(2) == 0) {
    site.policy.limits.move_deadline_ms = 100'000;
  }
  if (random.below(3) == 0) {
    site.policy.gates.lag_limit_bytes = 100'000;
  }
  if (seed % kDaysOneIn == kDaysOneIn / 2) {
    make_days(scenario);
  }
  scenario.emergency = seed % kEmergencyOneIn == 1 && site.model.voters.size() > 1 && site.agents &&
                       site.may_resign() && !scenario.days;
  scenario.unreported = !site.agents && seed % kUnreportedOneIn == 0;
  site.model.shows_points = scenario.unreported;
  return scenario;
}

}  // namespace verger::sim
