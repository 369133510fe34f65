#include "tests/simulation/certificate_rollouts/rollouts_in_a_row.h"

#include <fmt/format.h>
#include <stdexcept>

namespace verger::sim {

using controller::RunStatus;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

/// A rollout that nothing disturbs journals some sixty events.
constexpr std::uint64_t kMostEventsBefore = 48;
constexpr hours kLongest{6};

std::string_view name_of(Mishap mishap) { return kMishaps.at(static_cast<std::size_t>(mishap)); }

}  // namespace

void RolloutsInARow::pass(std::chrono::milliseconds time) {
  h_.run_until([] { return false; }, time);
}

planner::Policy RolloutsInARow::choose(Rollout& rollout) {
  rollout.mishap = static_cast<Mishap>(random_.below(kMishaps.size()));
  rollout.new_authority = random_.below(3) == 0;
  rollout.by_request = random_.below(2) == 0;
  rollout.after_events = static_cast<std::int64_t>(random_.below(kMostEventsBefore)) + 1;
  offered_ = rollout.new_authority
                 ? test::FakeAuthority::make(fmt::format("CA {}", number_), h_.time.now())
                 : certificates().authority;
  planner::CertificatesPolicy wanted;
  wanted.watch_ms = between(2'000, 20'000).count();
  if (rollout.by_request) {
    wanted.authority = fmt::format("corp{}", number_);
    wanted.key_type = planner::CertificateKey::kEcP256;
    signer_->authority = offered_;
  } else {
    offer(offered_);
  }
  return policy_of(wanted);
}

void RolloutsInARow::strike(const Rollout& rollout, const std::string& run) {
  struck_node_ = any_node();
  auto& struck = node(struck_node_);
  auto& its = certificates().node(struck_node_);
  switch (rollout.mishap) {
    case Mishap::kNone:
      break;
    case Mishap::kControllerKilled:
    case Mishap::kControllerKilledTwice:
      h_.crash();
      h_.time.jump(between(0, 60'000));
      h_.boot();
      break;
    case Mishap::kControllerAwayForLong:
      h_.crash();
      h_.time.jump(minutes(15));
      h_.boot();
      break;
    case Mishap::kAgentAway:
      struck.agent_up = false;
      break;
    case Mishap::kNodeAway:
    case Mishap::kMachineAway:
      struck.up = false;
      struck.agent_up = rollout.mishap == Mishap::kNodeAway;
      if (h_.cluster.leader() == nullptr || h_.cluster.leader()->name == struck_node_) {
        h_.cluster.elect(struck_node_ == "n1" ? "n2" : "n1");
      }
      break;
    case Mishap::kMessagesLost:
      h_.cluster.fate = [this](const test::FakeNode&,
                               const http::Request&) -> std::optional<test::Fate> {
        switch (random_.below(4)) {
          case 0:
            return test::Fate::kRefusedConnection;
          case 1:
            return test::Fate::kLost;
          case 2:
            return test::Fate::kReplyLost;
          default:
            return std::nullopt;
        }
      };
      break;
    case Mishap::kReloadFails:
      its.reload_fails_in = static_cast<api::CertificatePhase>(random_.below(3));
      break;
    case Mishap::kReloadLies:
      its.reload_lies = true;
      break;
    case Mishap::kDiskFull:
      its.disk_full = true;
      break;
    case Mishap::kPeerRefuses:
      its.refuses_clients = true;
      break;
    case Mishap::kPaused:
      static_cast<void>(h_.executor->pause(run, "operator", "by chance"));
      break;
    case Mishap::kCancelled:
      static_cast<void>(h_.executor->cancel(run, "operator", "by chance"));
      break;
    case Mishap::kSkipped:
      static_cast<void>(
          h_.wait_for(h_.executor->skip_node(run, struck_node_, "operator", "by chance")));
      break;
  }
}

/// As operators would; a server that starts reads its files.
void RolloutsInARow::heal() {
  h_.cluster.fate = {};
  for (auto& [name, its] : certificates().nodes) {
    auto& each = node(name);
    if (!each.up) {
      its.loaded = its.disk;
    }
    each.up = each.agent_up = true;
    its.reload_fails_in.reset();
    its.reload_lies = false;
    its.disk_full = false;
    its.refuses_clients = false;
  }
}

void RolloutsInARow::check_pairs(Rollout& rollout, const char* when) {
  for (int i = 1; i <= 3; ++i) {
    api::HandshakesRequest peers;
    for (int j = 1; j <= 3; ++j) {
      if (i != j) {
        peers.peers.push_back(
            {.name = fmt_name(j), .url = fmt::format("https://10.0.0.{}:2113", j)});
      }
    }
    http::Request request;
    request.method = "POST";
    request.target = "/agent/v1/certificates/handshakes";
    request.body = api::to_text(peers);
    const auto answer = certificates().answer(fmt_name(i), request);
    const auto seen = api::parse_peer_handshakes(answer->body);
    if (!seen) {
      rollout.violations.push_back(seen.error().message);
      continue;
    }
    for (const auto& each : *seen) {
      // One that is down, or refuses because that is the mishap, says nothing of the certificates.
      if (!each.problem.empty() || certificates().node(each.name).refuses_clients) {
        continue;
      }
      if (!each.trusted.value_or(false) || !each.accepted.value_or(false)) {
        rollout.violations.push_back(fmt::format("{}: {} and {} refuse each other: {}{}", when,
                                                 fmt_name(i), each.name, each.not_trusted,
                                                 each.not_accepted));
      }
    }
  }
}

/// After each change of what is on a disk.
void RolloutsInARow::look(Rollout& rollout) {
  auto& n2 = certificates().node("n2");
  if (broken_ && n2.restores != std::exchange(restores_seen_, n2.restores)) {
    n2.disk = n2.loaded = last_of_n2_;
  }
  last_of_n2_ = n2.disk;
  int changes = 0;
  for (const auto& [name, its] : certificates().nodes) {
    changes += its.switches + its.restores;
  }
  if (changes != std::exchange(changes_seen_, changes)) {
    check_pairs(rollout, "in the middle");
  }
}

void RolloutsInARow::check_end(Rollout& rollout, const std::string& run) {
  const auto state = h_.state(run);
  const bool changed = state.status == RunStatus::kDone;
  if (!has_ended(state.status)) {
    rollout.violations.push_back("it did not end: " + snapshot_of(state).state);
    return;
  }
  for (const auto& [name, its] : certificates().nodes) {
    const auto& [disk, loaded] = before_.at(name);
    if (its.disk != its.loaded) {
      rollout.violations.push_back(name + " shows something else than its files");
    }
    if (changed ? its.disk.chain == disk.chain || its.disk.key == disk.key
                : its.disk != disk || its.loaded != loaded) {
      rollout.violations.push_back(
          fmt::format("{}: {}, and it {}", name, changed ? "done" : state.reason,
                      changed ? "has its old certificate" : "is not as it was"));
    }
  }
  check_pairs(rollout, "at the end");
  rollout.outcome = report(run).value("outcome", std::string());
  if (rollout.outcome != (changed ? "changed" : "undone") &&
      (changed || rollout.outcome != "unchanged")) {
    rollout.violations.push_back("the report says " + rollout.outcome + ": " + state.reason);
  }
}

Rollout RolloutsInARow::roll() {
  Rollout out;
  ++number_;
  before_ = certificates().all();
  const auto run = start(choose(out));
  const auto first = h_.journal->last_sequence()->value();
  const auto events = [&] { return h_.journal->last_sequence()->value() - first; };
  const auto ended = [&] {
    look(out);
    return std::exchange(h_.news, false) && has_ended(h_.state(run).status);
  };
  bool over = false;
  const auto until_event = [&](std::int64_t nth) {
    h_.news = true;
    h_.run_until([&] { return (over = ended()) || events() >= nth; }, kLongest);
  };
  if (out.mishap != Mishap::kNone) {
    until_event(out.after_events);
    out.struck = !over;
  }
  if (out.struck) {
    strike(out, run);
    if (out.mishap == Mishap::kControllerKilledTwice) {
      until_event(events() + static_cast<std::int64_t>(random_.below(12)) + 1);
      if (!over) {
        strike(out, run);
      }
    }
    h_.news = true;
    h_.run_until([&] { return (over = ended()); }, between(1'000, 240'000));
    heal();
    if (h_.state(run).status == RunStatus::kPaused || out.mishap == Mishap::kPaused) {
      static_cast<void>(h_.wait_for(h_.executor->resume(run, "operator")));
    }
  }
  h_.news = true;
  h_.run_until(ended, kLongest);
  check_end(out, run);
  out.events = events();
  if (h_.state(run).status == RunStatus::kDone) {
    certificates().authority = offered_;
  }
  // A new leader, and what else is to settle.
  pass(minutes(2));
  if (!out.violations.empty()) {
    out.violations.insert(
        out.violations.begin(),
        fmt::format("rollout {}, {} after {} events, {}{}", number_, name_of(out.mishap),
                    out.after_events, out.by_request ? "by request" : "by path",
                    out.new_authority ? ", new authority" : ""));
  }
  return out;
}

}  // namespace verger::sim
