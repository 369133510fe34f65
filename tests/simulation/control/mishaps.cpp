#include "tests/simulation/control/mishaps.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace verger::sim {

using std::chrono::milliseconds;

namespace {

constexpr std::array<std::string_view, 31> kKinds = {"lost messages",
                                                     "late messages",
                                                     "duplicates",
                                                     "partition",
                                                     "isolation",
                                                     "crash",
                                                     "crash at failpoint",
                                                     "crash in journal",
                                                     "full disk",
                                                     "journal unknown",
                                                     "clock step",
                                                     "election out of turn",
                                                     "foreign scavenge",
                                                     "foreign stop",
                                                     "scavenge errors",
                                                     "agent gone",
                                                     "second controller",
                                                     "lagging follower",
                                                     "late operation",
                                                     "disk fills",
                                                     "agent lies",
                                                     "certificate ends",
                                                     "stranger",
                                                     "ghost",
                                                     "reply lost",
                                                     "node ends at the gate",
                                                     "leader ends in resigning",
                                                     "resigner wins",
                                                     "no election",
                                                     "point is late",
                                                     "pause over a dead node"};

/// What only several voters can suffer; there are fewer runs of such clusters.
constexpr std::array<std::string_view, 10> kOfSeveralVoters = {
    "no election",   "election out of turn",
    "point is late", "partition",
    "isolation",     "leader ends in resigning",
    "resigner wins", "no election",
    "ghost",         "point is late"};

/// What waited for its moment takes effect in it.
constexpr milliseconds kMoment{5'000};

}  // namespace

Mishaps::Mishaps(Site& site, Judge& judge, std::uint64_t seed, const Scenario& scenario)
    : site_(site),
      judge_(judge),
      world_(site.world()),
      random_(seed),
      density_(scenario.brief ? kBrief : kLong) {
  scenario.brief ? choose_few() : choose();
  if (scenario.days) {
    kinds_ = {"days"};
  }
  judge_.on_intended = [this](const std::string& step) { intended(step); };
  judge_.on_started = [this](const std::string& node) {
    if (const auto action = std::exchange(at_start_, nullptr)) {
      last_for(kMoment);
      action(node);
    }
  };
  judge_.on_resigned = [this](const std::string& node) {
    if (const auto action = std::exchange(at_resign_, nullptr)) {
      last_for(kMoment);
      action(node);
    }
  };
  loses_report_ = scenario.unreported;
  judge_.on_reached = [this](const std::string& node) {
    if (!over_ && std::exchange(loses_report_, false)) {
      lose_report(node);
    }
  };
  if (scenario.emergency) {
    judge_.on_lowering = [this] {
      if (!over_ && pause_run) {
        later(4'000, pause_run);
      }
    };
    judge_.on_undo = [this](const std::string& stage) {
      // As an event of its own: the controller is writing this.
      world_.schedule(milliseconds(0), [this, stage] { begin_emergency(stage); });
    };
  }
  site_.write_fate = [this](const std::string& host, bool written) { return write(host, written); };
}

bool Mishaps::can_happen(std::string_view kind) const {
  if (kind == "second controller") {
    return site_.options().second_controller;
  }
  if (kind == "agent gone" || kind == "late operation") {
    return site_.has_agents();
  }
  if (kind == "election out of turn" || kind == "lagging follower" || kind == "point is late") {
    return site_.model().voters() > 1;
  }
  if (kind == "leader ends in resigning" || kind == "resigner wins") {
    return site_.model().voters() > 1 && site_.options().may_resign();
  }
  if (kind == "no election") {
    return site_.model().voters() > 1 && site_.options().may_resign() &&
           site_.options().policy.limits.move_deadline_ms <= 120'000;
  }
  if (kind == "ghost") {
    return site_.model().hosts().size() > 1;
  }
  if (kind == "agent lies" || kind == "stranger" || kind == "disk fills") {
    return site_.has_agents();
  }
  if (kind == "certificate ends") {
    return site_.options().tls;
  }
  if (kind == "full disk" || kind == "journal unknown" || kind == "crash in journal") {
    return !site_.options().sqlite;
  }
  return true;
}

void Mishaps::choose() {
  const auto chance = 1 + random_.below(kKinds.size());
  for (const auto kind : kKinds) {
    if (random_.below(kKinds.size()) < chance && can_happen(kind)) {
      kinds_.emplace_back(kind);
    }
  }
  if (kinds_.empty()) {
    kinds_.emplace_back(kKinds.at(random_.below(kKinds.size())));
  }
  mean_gap_ = milliseconds(600 + random_.below(7'000));
  duration_ = milliseconds(5'000 + random_.below(60'000));
}

void Mishaps::choose_few() {
  if (site_.model().voters() > 1) {
    const auto kind = kOfSeveralVoters.at(random_.below(kOfSeveralVoters.size()));
    kinds_.emplace_back(can_happen(kind) ? kind : "election out of turn");
  }
  for (auto wanted = 1 + random_.below(2); wanted > 0;) {
    const auto kind = kKinds.at(random_.below(kKinds.size()));
    if (can_happen(kind)) {
      kinds_.emplace_back(kind);
      --wanted;
    }
  }
  mean_gap_ = milliseconds(100 + random_.below(1'000));
  duration_ = milliseconds(2'000 + random_.below(12'000));
}

std::string Mishaps::describe() const {
  return fmt::format("{} for {} ms, one in {} ms", fmt::join(kinds_, ", "), duration_.count(),
                     mean_gap_.count());
}

void Mishaps::begin() {
  over_ = false;
  ++generation_;
  over_at_ = world_.now() + duration_;
  quiet_at_ = over_at_;
  if (loses_report_) {
    wait_for_moment();
  }
  end_when_over();
  const auto gap = 2 * static_cast<std::uint64_t>(mean_gap_.count());
  next(std::min(gap, density_.first_within_ms));
}

void Mishaps::end_when_over() {
  const auto left = std::chrono::duration_cast<milliseconds>(over_at_ - world_.now());
  // What waits for its moment is looked at once a second.
  const auto again =
      left > milliseconds(0) ? std::min(left, milliseconds(5'000)) : milliseconds(1'000);
  world_.schedule(again, [this, mine = generation_] {
    if (mine != generation_) {
      return;
    }
    const bool waits = at_intent_ || at_start_ || at_resign_ || loses_report_;
    if (world_.now() >= over_at_ && (!waits || world_.now() >= waits_until_)) {
      over_ = true;
    } else {
      end_when_over();
    }
  });
}

void Mishaps::next(std::uint64_t within_ms) {
  const int mine = generation_;
  world_.schedule(milliseconds(1 + random_.below(within_ms)), [this, mine] {
    if (mine == generation_ && !over_ && world_.now() < quiet_at_) {
      carry_out();
      next(2 * static_cast<std::uint64_t>(mean_gap_.count()));
    }
  });
}

void Mishaps::later(std::uint64_t longest_ms, std::function<void()> action) {
  world_.schedule(milliseconds(100 + random_.below(longest_ms)),
                  [this, mine = generation_, action = std::move(action)] {
                    if (mine == generation_) {
                      action();
                    }
                  });
}

std::string Mishaps::any_program() {
  const auto programs = site_.programs();
  const auto which = random_.below(programs.size() + 2);  // the controller more often
  return which < programs.size() ? programs[which] : "c";
}

std::string Mishaps::any_node() {
  const auto nodes = site_.model().hosts();
  return nodes[random_.below(nodes.size())];
}

std::string Mishaps::any_machine() {
  auto machines = site_.model().hosts();
  for (const auto& name : site_.controllers()) {
    machines.push_back(name);
  }
  return machines[random_.below(machines.size())];
}

void Mishaps::crash(const std::string& host, bool power, std::string_view where) {
  const auto pause = milliseconds(random_.below(4) == 0 ? 500 + random_.below(20'000)
                                                        : 200 + random_.below(1'500));
  if (site_.crash(host, power, pause)) {
    site_.trace().add(world_.now(), host, power ? "FAULT power cut" : "FAULT killed");
    site_.trace().note(world_.now(), host, where);
    const auto* program = host[0] == 'n' ? "node" : host[0] == 'a' ? "agent" : "controller";
    count(fmt::format("{} {}", program, power ? "power cut" : "killed"));
    if (!where.empty()) {
      count(fmt::format("crash {}", where.substr(0, where.find(':'))));
    }
  }
}

WriteFate Mishaps::write(const std::string& host, bool written) {
  if (host == full_disk_ && !written) {
    count("write refused by a full disk");
    judge_.tournament().write_refused(host);
    return WriteFate::kNoSpace;
  }
  if (unknown_writes_ > 0 && !written && (host == "c" || host == "d")) {
    --unknown_writes_;
    count("write of a journal with unknown outcome");
    return random_.below(2) == 0 ? WriteFate::kUnknownWritten : WriteFate::kUnknownLost;
  }
  if (write_countdown_ == 0 || host != write_host_) {
    return WriteFate::kDone;
  }
  if (written == crash_after_write_ && --write_countdown_ == 0) {
    crash(host, random_.below(2) == 0,
          written ? "after a write of a journal" : "before a write of a journal");
    return WriteFate::kDead;
  }
  return WriteFate::kDone;
}

void Mishaps::intended(const std::string& step) {
  hold_operation();
  const bool scavenges = step.starts_with("scavenge-");
  if (scavenges && at_intent_) {
    last_for(kMoment);
    // As an event of its own: it may end the very process that is writing this.
    world_.schedule(
        milliseconds(0),
        [node = node_of_step(step), action = std::exchange(at_intent_, nullptr)] { action(node); });
  }
}

/// The step's request is late, and while it is under way the run is paused: a permit that has been
/// revoked must keep it from acting.
void Mishaps::hold_operation() {
  if (!std::exchange(hold_next_operation_, false)) {
    return;
  }
  auto& faults = world_.faults;
  const auto before = faults;
  faults.long_delay = 1'000;
  faults.longest_delay = milliseconds(14'000);
  world_.schedule(milliseconds(1), [&faults, before] { faults = before; });
  count("operation late, and the run paused meanwhile");
  later(1'500, [this] {
    if (pause_run) {
      pause_run();
    }
  });
}

void Mishaps::network(const std::string& kind) {
  auto& faults = world_.faults;
  const auto least = density_.least_lost;
  const auto some = least + static_cast<unsigned>(random_.below(250));
  if (kind == "lost messages") {
    faults.lose_request = some;
    faults.lose_response = least + static_cast<unsigned>(random_.below(250));
    later(12'000, [&faults] { faults.lose_request = faults.lose_response = 0; });
  } else if (kind == "late messages") {
    faults.long_delay = some;
    faults.longest_delay = milliseconds(200 + random_.below(12'000));
    later(12'000, [&faults] { faults.long_delay = 0; });
  } else if (kind == "duplicates") {
    faults.duplicate_request = some;
    later(12'000, [&faults] { faults.duplicate_request = 0; });
  } else if (kind == "partition") {
    const auto a = any_machine();
    const auto b = any_node();
    if (a != b) {
      world_.cut(a, b);
      count("machines cut off from each other");
      later(20'000, [this] { world_.heal(); });
    }
  } else {
    world_.isolate(any_machine());
    count("machine isolated");
    later(20'000, [this] { world_.heal(); });
  }
}

void Mishaps::cluster(const std::string& kind) {
  auto& model = site_.model();
  const auto node = any_node();
  if (kind == "election out of turn") {
    if (model.elect_out_of_turn()) {
      count(kind);
    }
  } else if (kind == "foreign scavenge") {
    if (!model.start_by_hand(node, random_.below(2) == 0).empty()) {
      count(kind);
    }
  } else if (kind == "foreign stop") {
    if (model.stop_by_hand(node)) {
      count("scavenge stopped by another client");
    }
  } else if (kind == "scavenge errors") {
    if (model.fail_scavenge(node)) {
      count("scavenge ended with an error");
    }
  } else {
    model.hold_up(node, milliseconds(1'000 + random_.below(15'000)));
    count("follower held up");
  }
}

void Mishaps::carry_out() {
  const auto kind = kinds_.at(random_.below(kinds_.size()));
  site_.trace().add(world_.now(), "", "FAULT " + kind);
  if (kind == "lost messages" || kind == "late messages" || kind == "duplicates" ||
      kind == "partition" || kind == "isolation") {
    network(kind);
  } else if (kind == "crash") {
    if (random_.below(2) == 0) {
      event_countdown_ = 1 + random_.below(density_.events);
    } else {
      crash(any_program(), random_.below(2) == 0, {});
    }
  } else if (kind == "crash at failpoint") {
    failpoint_host_ = any_program();
    failpoint_countdown_ = 1 + random_.below(density_.failpoints);
  } else if (kind == "crash in journal") {
    write_host_ = any_program();
    write_countdown_ = 1 + random_.below(density_.writes);
    crash_after_write_ = random_.below(2) == 0;
  } else if (kind == "full disk") {
    full_disk_ = any_program();
    later(15'000, [this] { full_disk_.clear(); });
  } else if (kind == "journal unknown") {
    unknown_writes_ = 1 + random_.below(3);
  } else if (kind == "clock step") {
    const auto host = any_program();
    const auto step = static_cast<std::int64_t>(random_.below(7'200'000)) - 3'600'000;
    world_.host(host).clock_skew += milliseconds(step);
    judge_.tournament().clock_stepped(host, milliseconds(step));
    count(kind);
    if (host == "c" || host == "d") {
      judge_.clock_stepped();
    }
  } else if (kind == "agent gone") {
    const auto agents = site_.agents();
    if (!agents.empty() && site_.crash(agents[random_.below(agents.size())], false,
                                       milliseconds(5'000 + random_.below(40'000)))) {
      count(kind);
    }
  } else if (kind == "late operation") {
    hold_next_operation_ = true;
  } else if (kind == "second controller") {
    if (site_.switch_controllers()) {
      count("another controller took over");
    }
  } else if (!provoke(kind)) {
    cluster(kind);
  }
}

void Mishaps::failpoint(std::string_view name) {
  auto* host = world_.running();
  if (host == nullptr || failpoint_countdown_ == 0 || host->name() != failpoint_host_ ||
      host->dying()) {
    return;
  }
  if (--failpoint_countdown_ == 0) {
    count(fmt::format("failpoint {}", name));
    crash(host->name(), random_.below(2) == 0, fmt::format("at failpoint: {}", name));
  }
}

void Mishaps::before_event() {
  if (event_countdown_ != 0 && --event_countdown_ == 0) {
    crash(any_program(), random_.below(2) == 0, {});
  }
}

void Mishaps::make_whole() {
  ++generation_;
  failpoint_countdown_ = 0;
  event_countdown_ = 0;
  write_countdown_ = 0;
  unknown_writes_ = 0;
  hold_next_operation_ = false;
  full_disk_.clear();
  at_intent_ = at_start_ = at_resign_ = nullptr;
  loses_report_ = false;
  world_.lose_answer = nullptr;
  for (const auto& node : site_.model().hosts()) {
    bring_back(node);
    site_.model().haunt(node, false);
  }
  site_.ailments().end_all(world_.now());
  world_.faults = testing::NetworkFaults{};
  world_.heal();
  for (const auto& name : site_.programs()) {
    world_.host(name).clock_skew = milliseconds(0);
  }
  site_.start_what_is_down();
}

void Mishaps::heal() {
  over_ = true;
  make_whole();
  site_.trace().add(world_.now(), "", "everything is healed");
  judge_.healed();
}

void Mishaps::begin_emergency(const std::string& stage) {
  constexpr milliseconds kDeadFor{90'000};
  auto others = site_.model().hosts();
  std::erase(others, node_of_step(stage));
  if (over_ || others.empty()) {
    return;
  }
  const auto dead = others[random_.below(others.size())];
  make_whole();
  quiet_at_ = world_.now();
  over_at_ = world_.now() + kDeadFor;
  end_when_over();
  site_.trace().add(world_.now(), dead, "FAULT dead while another node is undone");
  site_.crash(dead, /*power=*/false, kDeadFor);
  site_.crash(Site::agent_of(dead), /*power=*/false, kDeadFor);
  judge_.expect_undo(stage, dead);
  count("undo beside a dead node");
}

FaultTally Mishaps::tally() const {
  auto tally = tally_;
  const auto& counts = world_.counts;
  const auto add = [&tally](const char* kind, std::uint64_t number) {
    if (number > 0) {
      tally[kind] += number;
    }
  };
  add("request lost", counts.requests_lost);
  add("answer lost", counts.responses_lost);
  add("request twice", counts.requests_duplicated);
  add("message late", counts.delayed_long);
  add("message stopped by a partition", counts.partitioned);
  add("leader changed", site_.model().leader_changes);
  return tally;
}

}  // namespace verger::sim
