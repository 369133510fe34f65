#include "tests/simulation/control/mishaps.h"

// What provokes the rows of docs/tournament.md that no fault of the network or a process does.
namespace verger::sim {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

namespace {

/// Until a run comes to what was provoked.
constexpr minutes kMomentLimit{2};
constexpr milliseconds kLooksForScavenge{500};

}  // namespace

void Mishaps::last_for(milliseconds duration) {
  over_at_ = std::max(over_at_, world_.now() + duration);
}

void Mishaps::wait_for_moment() { waits_until_ = world_.now() + kMomentLimit; }

bool Mishaps::provoke(const std::string& kind) {
  const auto node = any_node();
  if (kind == "disk fills") {
    at_start_ = [this](const std::string& at) { fill_disk(at); };
    wait_for_moment();
  } else if (kind == "agent lies") {
    ail(random_.below(2) == 0 ? Ailment::kOldAgent : Ailment::kAgentLies, node, 40'000);
  } else if (kind == "certificate ends") {
    ail(Ailment::kShortCertificate, node, 100'000);
  } else if (kind == "stranger") {
    replace(node);
  } else if (kind == "ghost") {
    const auto pause = milliseconds(10'000 + random_.below(40'000));
    site_.model().haunt(node, true);
    if (site_.crash(node, false, pause)) {
      count("dead node called alive by the others");
      last_for(pause);
    }
  } else if (kind == "node ends at the gate") {
    at_intent_ = [this](const std::string& at) {
      if (site_.crash(at, false, milliseconds(1'000 + random_.below(20'000)))) {
        count("node ended between gate and act");
      }
    };
    wait_for_moment();
  } else if (kind == "reply lost") {
    at_intent_ = [this](const std::string& at) { lose_reply(at); };
    wait_for_moment();
  } else if (kind == "leader ends in resigning") {
    at_resign_ = [this](const std::string& at) { end_in_resigning(at); };
    wait_for_moment();
  } else if (kind == "resigner wins") {
    at_resign_ = [this](const std::string& /*at*/) {
      site_.model().let_resigner_win(1 + static_cast<int>(random_.below(2)));
      count("who resigned was elected again");
    };
    wait_for_moment();
  } else if (kind == "no election") {
    at_resign_ = [this](const std::string& /*at*/) {
      const auto pause = milliseconds(60'000 + random_.below(240'000));
      site_.model().slow_election(pause);
      last_for(pause);
      count("no leader elected for long");
    };
    wait_for_moment();
  } else if (kind == "point is late") {
    at_start_ = [this](const std::string& at) { hold_up_another(at); };
    wait_for_moment();
  } else if (kind == "pause over a dead node") {
    at_start_ = [this](const std::string& at) { pause_over_dead(at); };
    wait_for_moment();
  } else if (kind == "days") {
    be_down_for_days();
  } else {
    return false;
  }
  return true;
}

void Mishaps::ail(Ailment what, const std::string& node, std::uint64_t longest_ms) {
  site_.ailments().begin(what, node, world_.now());
  count("node ails");
  const auto pause = milliseconds(longest_ms / 4 + random_.below(longest_ms));
  last_for(pause);
  world_.schedule(pause, [this, what, node] { site_.ailments().end(what, node, world_.now()); });
}

void Mishaps::fill_disk(const std::string& node) {
  world_.schedule(milliseconds(600 + random_.below(2'000)), [this, node] {
    if (over_) {
      return;
    }
    const auto* process = site_.model().node(node);
    if (process == nullptr || !process->running() || process->running()->foreign) {
      at_start_ = [this](const std::string& at) { fill_disk(at); };
      return;
    }
    ail(Ailment::kLittleDisk, node, 40'000);
    site_.model().fail_scavenge(node);
    count("disk filled under a scavenge");
  });
}

void Mishaps::replace(const std::string& node) {
  // Before, an operator has registered the members that were there.
  if (!judge_.cluster_is_identified() || site_.ailments().has(Ailment::kStranger, node) ||
      !site_.crash(node, false, milliseconds(1'000 + random_.below(5'000)))) {
    return;
  }
  site_.model().replace(node, /*by_stranger=*/true);
  site_.ailments().begin(Ailment::kStranger, node, world_.now());
  count("node replaced by a stranger");
  const auto pause = milliseconds(10'000 + random_.below(45'000));
  last_for(pause);
  world_.schedule(pause, [this, node] { bring_back(node); });
}

void Mishaps::bring_back(const std::string& node) {
  if (site_.ailments().has(Ailment::kStranger, node)) {
    site_.crash(node, false, milliseconds(500));
    site_.model().replace(node, /*by_stranger=*/false);
    site_.ailments().end(Ailment::kStranger, node, world_.now());
  }
}

void Mishaps::lose_reply(const std::string& node) {
  const auto receiver = site_.has_agents() ? Site::agent_of(node) : node;
  world_.lose_answer = [this, receiver, node](const testing::SimMessage& answer) {
    if (answer.from != receiver || answer.method != "POST" ||
        (answer.target != "/agent/v1/operations" &&
         !answer.target.starts_with("/admin/scavenge"))) {
      return false;
    }
    count("reply to a start lost");
    judge_.tournament().fates().answer_lost(node);
    world_.schedule(milliseconds(0), [this] { world_.lose_answer = nullptr; });
    return true;
  };
}

/// As an event of its own: the tick that ended the scavenge is still under way. What the node would
/// write into the log with the next one is gone with its process.
void Mishaps::lose_report(const std::string& node) {
  world_.schedule(milliseconds(0), [this, node] {
    const auto pause = milliseconds(200 + random_.below(10'000));
    if (site_.crash(node, /*power=*/true, pause)) {
      count("power cut before a scavenge was reported");
      last_for(pause);
    }
  });
}

void Mishaps::end_in_resigning(const std::string& node) {
  world_.schedule(milliseconds(random_.below(400)), [this, node] {
    const auto pause = milliseconds(1'000 + random_.below(90'000));
    if (!over_ && site_.crash(node, random_.below(2) == 0, pause)) {
      count("leader ended in resigning");
      last_for(pause);
    }
  });
}

/// The node that is scavenged now makes the point; one of the others does not get to see it for a
/// while.
void Mishaps::hold_up_another(const std::string& node) {
  for (const auto& other : site_.model().hosts()) {
    if (other != node && other != site_.model().leader() && site_.model().is_voter(other)) {
      const auto pause = milliseconds(15'000 + random_.below(30'000));
      site_.model().hold_up(other, pause);
      last_for(pause);
      count("follower held up before the point");
      return;
    }
  }
}

void Mishaps::pause_over_dead(const std::string& node) {
  world_.schedule(milliseconds(600 + random_.below(1'500)), [this, node] {
    const auto* process = site_.model().node(node);
    const auto pause = milliseconds(8'000 + random_.below(30'000));
    if (!over_ && process != nullptr && process->running() && site_.crash(node, false, pause)) {
      count("run paused over a dead node");
      last_for(pause);
      later(2'000, [this] {
        if (pause_run) {
          pause_run();
        }
      });
    }
  });
}

/// As soon as a scavenge of the run is at work.
void Mishaps::be_down_for_days() {
  wait_for_moment();
  at_start_ = [this](const std::string& node) {
    world_.schedule(kLooksForScavenge, [this, node] {
      const auto* process = site_.model().node(node);
      const auto pause = hours(24 + static_cast<int>(random_.below(48)));
      if (!over_ && process != nullptr && process->running() &&
          site_.crash(node, random_.below(2) == 0, pause)) {
        count("node down for days");
        last_for(pause + minutes(1));
      }
    });
  };
}

}  // namespace verger::sim
