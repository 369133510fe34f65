#include "tests/simulation/control/tournament.h"

#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "controller/executor/events.h"
#include "controller/scheduler/policy_book.h"
#include "controller/scheduler/scheduler.h"

namespace verger::sim {

using std::chrono::milliseconds;
using std::chrono::minutes;
namespace events = controller::events;

namespace {

/// What is said now was seen so long ago at most.
constexpr milliseconds kLooksTake{35'000};
/// A certificate is looked at once a minute.
constexpr milliseconds kCertificateLooksTake = kLooksTake + minutes(1);
/// The gate of the clocks is at a minute; nearer to it than this, nothing is judged.
constexpr milliseconds kClearlyOff{90'000};
constexpr milliseconds kClearlyRight{30'000};
constexpr milliseconds kLongJump = minutes(10);

std::string text_in(api::JsonView object, std::string_view name) {
  const auto value = object.find(name);
  return value && value->is_string() ? value->string() : std::string();
}

}  // namespace

bool is_policy_change(const controller::JournalEvent& event, const Scenario& scenario) {
  if (event.type != events::kPolicyApplied || scenario.changed_yaml.empty()) {
    return false;
  }
  const auto document = api::JsonDocument::parse(event.data, "event");
  return document && text_in(document->root(), "yaml") == scenario.changed_yaml;
}

Tournament::Tournament(Site& site, const Scenario& scenario,
                       std::function<void(std::string)> violation)
    : site_(site),
      scenario_(scenario),
      rulings_{.met = [this](std::string_view what) { met(what); },
               .violation = std::move(violation)},
      fates_(site, scenario, rulings_) {}

// --- what is claimed

void Tournament::run_event(const controller::JournalEvent& event, api::JsonView data) {
  const auto& type = event.type;
  const auto step = text_in(data, "step");
  if (type == events::kRunStarted) {
    run_started(event, data);
    return;
  }
  if (event.stream != run_) {
    return;
  }
  if (std::exchange(write_refused_, false)) {
    met(row::kJournalFull);  // it works again, and what was refused is not in the journal
  }
  if (type == events::kStepIntended) {
    const auto memo = data.find("memo");
    fates_.intended(text_in(data, "operation"), step,
                    memo && memo->is_object() ? text_in(*memo, "adopted") : "", event.epoch);
  } else if (type == events::kStepRetry || type == events::kStepInterrupted ||
             type == events::kStepFailed || type == events::kStepDone ||
             type == events::kStepSkipped || type == events::kStepUndone) {
    const auto counts = data.find("counts");
    const auto result = data.find("result");
    fates_.closed({.type = type,
                   .step = step,
                   .outcome = text_in(data, "outcome"),
                   .code = text_in(data, "code"),
                   .counts = !counts || counts->boolean(),
                   .not_needed = result && result->is_object() && result->find("not_needed"),
                   .epoch = event.epoch});
  } else if (type == events::kStageStarted) {
    fates_.stage_started();
  } else if (type == events::kStepUnknown) {
    fates_.unknown(step);
  } else if (type == events::kStepWaiting) {
    const auto reason = text_in(data, "reason");
    if (const auto gates = data.find("gates"); gates && gates->is_array()) {
      for (const auto& gate : gates->values()) {
        closed_gate(text_in(gate, "code"), text_in(gate, "node"), text_in(gate, "reason"));
      }
    }
    waits_for_point(step, reason);
  } else if (type == events::kRunValue) {
    if (text_in(data, "name") == "shared_point") {
      if (const auto value = data.find("value"); value && value->is_object()) {
        const auto number = value->find("number");
        shared_point_ = number ? number->signed_number().value_or(-1) : -1;
      }
    }
  } else if (type == events::kNodeSkipped) {
    skipped_nodes_.insert(text_in(data, "node"));
    fates_.skipped(text_in(data, "node"));
  } else if (type == events::kRunPausing) {
    fates_.pausing(text_in(data, "mode") == "drain");
  } else if (type == events::kRunPaused) {
    fates_.paused();
  } else if (type == events::kRunResumed) {
    fates_.resumed();
  } else if (type == events::kRunEnded) {
    run_ended_ = true;
    if (controller_clock_jumped_ && text_in(data, "state") == "done") {
      met(row::kControllerClock);
    }
  }
}

void Tournament::run_started(const controller::JournalEvent& event, api::JsonView data) {
  if (!run_.empty()) {
    if (!run_ended_) {
      rulings_.violation(fmt::format("{} starts while {} has not ended", event.stream, run_));
    }
    return;
  }
  run_ = event.stream;
  if (due_while_down_ && text_in(data, "by").starts_with("policy/")) {
    met(row::kDueWhileDown);
  }
}

void Tournament::other_event(const controller::JournalEvent& event) {
  if (event.type == events::kPolicyApplied) {
    policy_changed_ = is_policy_change(event, scenario_) && !run_.empty() && !run_ended_;
    return;
  }
  const bool waits = event.type == events::kScheduleWaiting;
  if ((waits || event.type == events::kScheduleSettled) && !run_.empty() && !run_ended_) {
    const auto document = api::JsonDocument::parse(event.data, "event");
    const auto reason = document ? text_in(document->root(), "reason") : std::string();
    // "run 0123456789ab of policy hours is running"
    if (reason.starts_with("run " + run_.substr(run_.find('/') + 1, 12))) {
      met(row::kLongCycle);
    }
  }
}

void Tournament::refused(const std::string& body) {
  const auto document = api::JsonDocument::parse(body, "refusals");
  const auto refusals = document ? document->root().find("refusals") : std::nullopt;
  if (!refusals || !refusals->is_array()) {
    return;
  }
  for (const auto& refusal : refusals->values()) {
    closed_gate(text_in(refusal, "code"), text_in(refusal, "node"), text_in(refusal, "message"));
  }
}

void Tournament::closed_gate(const std::string& code, const std::string& node,
                             const std::string& reason) {
  auto& model = site_.model();
  if (code == "disk") {
    claim_of(Ailment::kLittleDisk, fates_.errored_at(node) ? row::kDiskFills : "", node, reason,
             kLooksTake);
  } else if (code == "agent-too-old") {
    claim_of(Ailment::kOldAgent, row::kAgentTooOld, node, reason, kLooksTake);
  } else if (code == "agent-gone" && reason.contains("23.10.1")) {
    claim_of(Ailment::kAgentLies, row::kAgentLies, node, reason, kLooksTake);
  } else if (code == "certificate-expires" || code == "certificate-expired") {
    claim_of(Ailment::kShortCertificate, row::kCertificate, node, reason, kCertificateLooksTake);
  } else if (code == "wrong-node" && reason.contains("its database is")) {
    claim_of(Ailment::kStranger, row::kReplaced, node, reason, kLooksTake);
  } else if (code == "clock-skew") {
    look_at_clocks();
    const auto by_gossip = std::chrono::abs(site_.world().host(site_.acting_host()).clock_skew);
    if (std::max<milliseconds>(site_.clocks_differ(node), by_gossip) < kClearlyRight) {
      claim_of(Ailment::kClockOff, row::kClockOff, node, reason, kLooksTake);
    } else {
      met(row::kClockOff);
    }
  } else if (code == "node-down") {
    if (fates_.down_for(node, milliseconds(3'000)) && model.called_alive(node)) {
      met(row::kDeadInGossip);
    }
  } else if (code == "scavenge-running") {
    for (const auto& id : foreign_ids_) {
      if (reason.contains(id)) {
        met(row::kForeign);
      }
    }
  } else if (code == "outside-hours" && policy_changed_) {
    if (!scenario_.denied_by_change(site_.world().wall())) {
      return;
    }
    met(row::kPolicyChanged);
  }
}

void Tournament::claim_of(Ailment what, std::string_view row, const std::string& node,
                          const std::string& reason, milliseconds late) {
  if (!site_.ailments().was(what, node, site_.world().now(), late)) {
    rulings_.violation(
        fmt::format("{} is said to hold the run back, which is not so: {}", node, reason));
  } else if (!row.empty()) {
    met(row);
  }
}

void Tournament::waits_for_point(const std::string& step, const std::string& reason) {
  constexpr std::string_view kBefore = "scavenge point ";
  if (!reason.starts_with(kBefore) || !reason.ends_with("has not reached it yet")) {
    return;
  }
  std::int64_t number = -1;
  std::from_chars(reason.data() + kBefore.size(), reason.data() + reason.size(), number);
  const auto node = node_of_step(step);
  auto& model = site_.model();
  if (model.newest_point(node) < number) {
    point_seen_at_.erase(node);
    met(row::kMissesPoint);
    return;
  }
  const auto [seen, is_new] = point_seen_at_.emplace(node, site_.world().now());
  if (!is_new && site_.world().now() - seen->second > kLooksTake) {
    rulings_.violation(fmt::format("{} is said to miss point {}, which it has", node, number));
  }
}

// --- what happens

void Tournament::acts(const std::string& node, const std::string& kind,
                      const std::string& operation) {
  fates_.acted(node, kind, operation);
  if (kind != "scavenge" && kind != "resign") {
    return;
  }
  look_at_clocks();
  const auto now = site_.world().now();
  const auto& ailments = site_.ailments();
  const auto check = [&](Ailment what, const std::string& at, milliseconds late,
                         std::string_view why) {
    if (!skipped_nodes_.contains(at) && ailments.lasts(what, at, now, late)) {
      rulings_.violation(fmt::format("{}: a {} begins although {} {}", node, kind, at, why));
    }
  };
  for (const auto& host : site_.model().hosts()) {
    check(Ailment::kOldAgent, host, kLooksTake, "has too old an agent");
    check(Ailment::kAgentLies, host, kLooksTake, "has an agent that lies");
    check(Ailment::kStranger, host, kLooksTake, "is another machine with another database");
    check(Ailment::kShortCertificate, host, kCertificateLooksTake, "has a certificate that ends");
    check(Ailment::kClockOff, host, kLooksTake, "has a clock that is off");
  }
  const auto wall = site_.world().wall();
  if (policy_changed_ && scenario_.denied(wall) && !scenario_.denied_by_change(wall)) {
    met(row::kPolicyChanged);
  }
  if (kind == "scavenge") {
    check(Ailment::kLittleDisk, node, kLooksTake, "has no room on its disk");
  }
}

void Tournament::started(const std::string& node, bool foreign) {
  fates_.started(node, foreign);
  if (foreign) {
    foreign_ids_.insert(site_.model().node(node)->running()->id);
  }
  if (!foreign && site_.has_agents() && shared_point_ >= 0 &&
      site_.model().newest_point(node) < shared_point_ &&
      !fates_.restarted_within(node, kLooksTake)) {
    rulings_.violation(fmt::format("{} is scavenged without point {}, which is not there yet", node,
                                   shared_point_));
  }
}

void Tournament::refused_start(const std::string& node, const ModelScavenge& running) {
  if (running.foreign && running.age > kLooksTake && site_.has_agents()) {
    rulings_.violation(
        fmt::format("{} is asked for a scavenge beside another client's {}", node, running.id));
  }
}

void Tournament::clock_stepped(std::string_view host, milliseconds by) {
  const bool is_controller = host == "c" || host == "d";
  if (is_controller && std::chrono::abs(by) >= kLongJump && !run_.empty() && !run_ended_) {
    controller_clock_jumped_ = true;
  }
  if (is_controller) {
    fates_.controller_clock_set();
  }
  look_at_clocks();
}

void Tournament::look_at_clocks() {
  for (const auto& node : site_.model().hosts()) {
    if (site_.clocks_differ(node) > kClearlyOff) {
      site_.ailments().begin(Ailment::kClockOff, node, site_.world().now());
    } else {
      site_.ailments().end(Ailment::kClockOff, node, site_.world().now());
    }
  }
}

void Tournament::write_refused(const std::string& host) {
  write_refused_ = write_refused_ || ((host == "c" || host == "d") && !run_.empty() && !run_ended_);
}

void Tournament::due() { due_while_down_ = run_.empty() && site_.acting_controller() == nullptr; }

}  // namespace verger::sim
