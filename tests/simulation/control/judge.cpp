#include "tests/simulation/control/judge.h"

#include <algorithm>
#include <fmt/format.h>

#include "controller/cluster/cluster_events.h"
#include "controller/executor/events.h"
#include "controller/scheduler/policy_book.h"

namespace verger::sim {

using std::chrono::milliseconds;
namespace events = controller::events;

namespace {

/// A step acts on what was seen this long ago at most: looks, permits and messages take their time.
constexpr milliseconds kStale{35'000};
/// A healthy controller notices the end of its hours and has what runs stopped.
constexpr milliseconds kStopsWithin{60'000};
/// What a person has changed is acted by after this.
constexpr milliseconds kHoursAreRead{10'000};

}  // namespace

Judge::Judge(Site& site, const Scenario& scenario)
    : site_(site),
      scenario_(scenario),
      tournament_(site, scenario, [this](std::string text) { violation(std::move(text)); }) {
  site_.on_journal = [this](const controller::JournalEvent& event) { journaled(event); };
  site_.on_operation = [this](const std::string& node, const agent::OperationRecord& record) {
    operation(node, record);
  };
  auto& model = site_.model();
  model.on_start = [this](std::string_view node, bool foreign) {
    started(std::string(node), foreign);
  };
  model.on_finished = [this](std::string_view node, std::int64_t point) {
    finished_at_[std::string(node)][point] = site_.world().now();
    const auto& finished = site_.model().database(node).finished;
    if (const auto times = finished.at(point); times > 1) {
      violation(fmt::format("{} finished point {} {} times", node, point, times));
    }
  };
  model.on_resign = [this](std::string_view node) { resigned(std::string(node)); };
  auto& fates = tournament_.fates();
  model.on_end = [this, &fates](std::string_view node, const ModelScavenge& scavenge,
                                const ModelEnd& end) {
    fates.ended(std::string(node), scavenge, end);
    if (on_reached && !scavenge.foreign && scavenge.has_point && end.result == "Success") {
      on_reached(std::string(node));
    }
  };
  model.on_point_written = [&fates](std::string_view /*node*/, std::int64_t point, bool foreign) {
    fates.point_written(point, foreign);
  };
  model.on_gone = [&fates](std::string_view node, const std::optional<ModelScavenge>& running) {
    fates.gone(std::string(node), running);
  };
  model.on_refused_start = [this](std::string_view node, const ModelScavenge& running) {
    tournament_.refused_start(std::string(node), running);
  };
  model.on_boot = [&fates](std::string_view node) { fates.back(std::string(node)); };
  model.on_elected = [&fates](std::string_view node, bool again) {
    fates.elected(std::string(node), again);
  };
  site_.on_crash = [this](const std::string& host) {
    const auto* acting = site_.acting_controller();
    if (acting != nullptr && acting == site_.controller(host)) {
      tournament_.fates().controller_gone();
    }
  };
}

void Judge::violation(std::string text) {
  if (said_.insert(text).second) {
    site_.trace().add(site_.world().now(), "", "VIOLATION " + text);
    violations_.push_back(std::move(text));
  }
}

bool Judge::denied_for(const std::string& run, milliseconds duration) const {
  if (ignores_hours_.contains(run)) {
    return false;
  }
  const auto now = site_.world().wall();
  const Ticks before(now.value() - duration.count() * kTicksPerMillisecond);
  const Ticks between(now.value() - duration.count() / 2 * kTicksPerMillisecond);
  if (hours_since_ && site_.world().now() - *hours_since_ <= duration + kHoursAreRead) {
    return false;
  }
  if (hours_are_changed_) {
    return scenario_.denied_by_change(now) && scenario_.denied_by_change(before) &&
           scenario_.denied_by_change(between);
  }
  return scenario_.denied(now) && scenario_.denied(before) && scenario_.denied(between);
}

// --- what is claimed

void Judge::journaled(const controller::JournalEvent& event) {
  auto& trace = site_.trace();
  trace.add(site_.world().now(), event.stream, event.type);
  if (trace.printing()) {
    trace.note(site_.world().now(), "",
               fmt::format("JOURNAL {} {} {}", event.stream, event.type, event.data));
  }
  if (event.stream.starts_with("run/")) {
    run_event(event);
    return;
  }
  tournament_.other_event(event);
  follow_hours(event);
  if (event.type == events::kClusterPaused) {
    cluster_paused_ = true;
  } else if (event.type == events::kClusterResumed) {
    cluster_paused_ = false;
  } else if (event.type == events::kClusterIdentified || event.type == events::kClusterAdded) {
    const auto document = api::JsonDocument::parse(event.data, "event");
    const auto identity = document ? document->root().find("identity") : std::nullopt;
    identified_ = identified_ || (identity && identity->is_string() && !identity->string().empty());
  }
}

void Judge::follow_hours(const controller::JournalEvent& event) {
  // The change may have been lost on its way, and what it changed be applied once more after it:
  // what the journal has last counts.
  if (event.type == events::kPolicyApplied &&
      is_policy_change(event, scenario_) != hours_are_changed_) {
    hours_since_ = site_.world().now();
    hours_are_changed_ = !hours_are_changed_;
  }
}

void Judge::close(const std::string& step, bool skipped) {
  const auto open = open_steps_.find(step);
  if (open != open_steps_.end()) {
    auto& intention = intentions_[open->second];
    intention.open = false;
    intention.skipped = skipped;
    open_steps_.erase(open);
  }
}

void Judge::run_event(const controller::JournalEvent& event) {
  const auto& type = event.type;
  if (type == events::kRunStarted) {
    active_run_ = event.stream.substr(std::string_view("run/").size());
  }
  if (run_.empty()) {
    run_ = event.stream;
  }
  if (type == events::kStepActed || type == events::kStepProgress) {
    return;  // long, many, and nothing is judged by them
  }
  const auto document = api::JsonDocument::parse(event.data, "event");
  if (!document) {
    violation(fmt::format("{} {} is not JSON: {}", event.stream, type, event.data));
    return;
  }
  const auto data = document->root();
  tournament_.run_event(event, data);
  if (event.stream != run_ || type == events::kRunStarted) {
    return;
  }
  const auto text = [&data](std::string_view name) {
    const auto value = data.find(name);
    return value && value->is_string() ? value->string() : std::string();
  };
  follow_undo(event, text("stage"), text("step"));
  if (type == events::kStepIntended || type == events::kUndoIntended) {
    const auto step = text("step");
    const auto operation = text("operation");
    if (!intentions_.emplace(operation, Intention{.step = step}).second) {
      violation(fmt::format("operation {} is intended twice", operation));
    }
    if (type == events::kUndoIntended) {
      return;  // an undo is requested until it is seen; it stays open
    }
    if (const auto open = open_steps_.find(step); open != open_steps_.end()) {
      violation(fmt::format("step {} is intended again while the outcome of {} is not known", step,
                            open->second));
    }
    open_steps_[step] = operation;
    if (on_intended) {
      on_intended(step);
    }
  } else if (type == events::kStepRetry || type == events::kStepInterrupted ||
             type == events::kStepFailed || type == events::kStepUndone) {
    close(text("step"), /*skipped=*/false);
  } else if (type == events::kStepSkipped) {
    close(text("step"), /*skipped=*/true);
  } else if (type == events::kStepDone) {
    const auto step = text("step");
    step_done(step, data.find("result"));
    close(step, /*skipped=*/false);
  } else if (type == events::kNodeSkipped) {
    skipped_nodes_.insert(text("node"));
  } else if (type == events::kLeaderMoved) {
    const auto planned = data.find("planned");
    if (planned && planned->boolean() && ++planned_moves_ > 1) {
      violation("the journal has a second planned move of the leader");
    }
  } else if (type == events::kRunPausing || type == events::kRunPaused) {
    paused_ = true;
  } else if (type == events::kRunResumed) {
    paused_ = false;
    const auto ignores_hours = data.find("ignore_hours");
    if (ignores_hours && ignores_hours->boolean()) {
      if (text("by").empty() || text("reason").empty()) {
        violation("the hours are ignored, and the journal lacks who asked for it, or why");
      }
      ignores_hours_.insert(event.stream.substr(std::string_view("run/").size()));
    }
  } else if (type == events::kStepWaiting) {
    if (text("reason").empty()) {
      violation(fmt::format("{} waits without a reason", text("step")));
    }
  } else if (type == events::kRunEnded) {
    run_state_ = text("state");
    run_reason_ = text("reason");
    if (run_state_ != "done" && run_state_ != "cancelled" && run_reason_.empty()) {
      violation(fmt::format("the run ended {} without a reason", run_state_));
    }
    check_end_of_run();
    active_run_.clear();
  }
}

void Judge::expect_undo(const std::string& stage, const std::string& dead) {
  constexpr std::chrono::seconds kLimit{60};
  emergency_ = Emergency{stage, dead};
  site_.world().schedule(kLimit, [this, stage] {
    if (!emergency_ || emergency_->stage != stage) {
      return;
    }
    for (const auto& step : to_undo_) {
      if (node_of_step(step) == node_of_step(stage)) {
        violation(fmt::format("{} is not undone after a minute, while only {} is dead", step,
                              emergency_->dead));
      }
    }
  });
}

/// A healthy node is never left un-undone because another is dead.
void Judge::follow_undo(const controller::JournalEvent& event, const std::string& stage,
                        const std::string& step) {
  const auto& type = event.type;
  if (type == events::kStepIntended) {
    if (step.starts_with("lower-") || step.starts_with("restore-") ||
        step.starts_with("offline-")) {
      to_undo_.insert(step);
    }
    if (step.starts_with("lower-") && on_lowering) {
      on_lowering();
    }
  } else if (type == events::kStepUndone) {
    to_undo_.erase(step);
  } else if (type == events::kUndoFailed && emergency_) {
    violation(fmt::format("{} could not be undone, while only {} is dead", step, emergency_->dead));
  } else if (type == events::kUndoStarted) {
    if (on_undo) {
      on_undo(stage);
    }
  } else if (type == events::kStageRolledBack || type == events::kStageEnded) {
    emergency_.reset();
  }
}

void Judge::check_end_of_run() {
  if (run_state_ == "done" && comparison_differs_) {
    violation("the run is done, although its comparison found differences");
  } else if (run_state_ == "done-with-differences" && !comparison_differs_) {
    violation("the run ended with differences that its comparison did not find");
  }
}

void Judge::check_comparison(api::JsonView result) {
  const auto is_true = [&result](std::string_view name) {
    const auto value = result.find(name);
    return value && value->boolean();
  };
  const auto nodes = result.find("nodes");
  if (!is_true("compared") || !nodes) {
    return;
  }
  std::set<std::int64_t> points;
  for (const auto& host : site_.model().hosts()) {
    const auto said = nodes->find(host);
    if (!said) {
      continue;  // skipped
    }
    const auto last = said->find("last_finished");
    const auto number = last && last->is_object() ? last->find("number") : std::nullopt;
    const auto point = number ? number->signed_number().value_or(-1) : -1;
    points.insert(point);
    if (replaced_.contains(host)) {
      continue;
    }
    // What was seen may be older than what is.
    const auto& finished = finished_at_[host];
    const auto newest = finished.rbegin();
    const bool is_newest = finished.empty() ? point < 0 : newest->first == point;
    const bool was_newest =
        finished.contains(point) && site_.world().now() - newest->second <= kStale;
    const auto& checkpoint = site_.model().database(host).checkpoint;
    const bool is_hidden =
        point < 0 && checkpoint && checkpoint->stage != scavenge::Stage::kDone;  // by a later one
    if (!is_newest && !was_newest && !is_hidden) {
      violation(fmt::format("the comparison says that {} finished point {}, it finished {}", host,
                            point, finished.empty() ? -1 : newest->first));
    }
  }
  if (is_true("same_point") != (points.size() == 1)) {
    violation("the comparison contradicts itself about the points: " + std::string(result.text()));
  }
  // The model's nodes hold the same up to each point.
  if (!is_true("equal") || !is_true("readable_equal")) {
    violation("the comparison says that nodes differ which do not: " + std::string(result.text()));
  }
  const auto differences = result.find("differences");
  comparison_differs_ = differences && !differences->values().empty();
  if (comparison_differs_ != (points.size() > 1)) {
    violation("the comparison's differences are not what it compared: " +
              std::string(result.text()));
  }
}

void Judge::step_done(const std::string& step, std::optional<api::JsonView> result) {
  if (step == "compare-digests" && result) {
    check_comparison(*result);
  }
  if (!is_scavenge_step(step)) {
    return;
  }
  const auto node = node_of_step(step);
  const auto& database = site_.model().database(node);
  const auto point = result ? result->find("point") : std::nullopt;
  if (point && point->is_object()) {
    const auto said = point->find("number");
    const auto number = said ? said->signed_number().value_or(-1) : -1;
    // A later point covers it.
    if (database.finished.lower_bound(number) == database.finished.end() &&
        !replaced_.contains(node)) {
      violation(
          fmt::format("{} is reported done, but {} has not finished point {}", step, node, number));
    }
    return;
  }
  if (site_.has_agents()) {
    violation(
        fmt::format("{} is done without a point: {}", step, result ? result->text() : "no result"));
  } else if (step.starts_with("scavenge-") && database.finished.empty() &&
             !replaced_.contains(node)) {
    // Which point is not known without an agent, but there must be one.
    violation(fmt::format("{} is reported done, but {} has finished nothing", step, node));
  }
}

// --- what happens

void Judge::operation(const std::string& node, const agent::OperationRecord& record) {
  const auto& request = record.request;
  // Stored as acting right before the one request to the node.
  if (record.status.state != api::OperationState::kActing || !acted_.insert(request.id).second) {
    return;
  }
  tournament_.acts(node, request.kind, request.id);
  scavenges_acted_[node] += request.kind == "scavenge" ? 1 : 0;
  resigns_acted_[node] += request.kind == "resign" ? 1 : 0;
  // What a step has other nodes do as well has the step's id and their names.
  const auto found = intentions_.find(request.id.substr(0, request.id.find('.')));
  if (found == intentions_.end()) {
    violation(fmt::format("{}: operation {} acts, the journal has no intent", node, request.id));
    return;
  }
  if (!found->second.open && !found->second.skipped) {
    violation(fmt::format("{}: operation {} acts after its intent ({}) was given up", node,
                          request.id, found->second.step));
  }
  if (request.kind == "scavenge" || request.kind == "resign") {
    check_quorum(node, request.kind);
    if (!clock_was_wrong_ && denied_for(request.run, kStale)) {
      violation(fmt::format("{}: a {} begins in denied hours", node, request.kind));
    }
  }
}

void Judge::check_quorum(const std::string& node, std::string_view what) {
  const auto now = site_.world().now();
  for (const auto& other : site_.model().hosts()) {
    if (!site_.model().is_voter(other) || skipped_nodes_.contains(other)) {
      continue;
    }
    const auto settled = site_.model().last_settled(other);
    if (now - settled > kStale) {
      violation(fmt::format("{}: a {} begins while {} has been away for {} ms", node, what, other,
                            std::chrono::duration_cast<milliseconds>(now - settled).count()));
    }
  }
}

void Judge::started(const std::string& node, bool foreign) {
  site_.trace().add(site_.world().now(), node, foreign ? "foreign scavenge" : "scavenge");
  tournament_.started(node, foreign);
  if (!foreign && on_started) {
    on_started(node);
  }
  if (foreign) {
    return;
  }
  ++scavenges_begun_[node];
  if (site_.has_agents() && scavenges_begun_[node] > scavenges_acted_[node]) {
    violation(fmt::format("{} was asked {} times to scavenge by {} operations", node,
                          scavenges_begun_[node], scavenges_acted_[node]));
  }
  if (scavenge_of(scenario_.site.policy).strategy == planner::Strategy::kConcurrent) {
    return;
  }
  for (const auto& other : site_.model().hosts()) {
    const auto* process = site_.model().node(other);
    if (other != node && process != nullptr && process->running() && !process->running()->foreign &&
        site_.has_agents()) {
      violation(fmt::format("{} and {} are scavenged at the same time", other, node));
    }
  }
}

void Judge::resigned(const std::string& node) {
  site_.trace().add(site_.world().now(), node, "asked to resign");
  tournament_.fates().resigned(node);
  if (on_resigned) {
    on_resigned(node);
  }
  ++resigns_seen_[node];
  if (planned_moves_ > 0) {
    violation(fmt::format("{} is asked to resign after the planned move", node));
  }
  if (site_.has_agents() && resigns_seen_[node] > resigns_acted_[node]) {
    violation(fmt::format("{} was asked {} times to resign by {} operations", node,
                          resigns_seen_[node], resigns_acted_[node]));
  }
}

void Judge::look_at_digests() {
  for (const auto& host : site_.model().hosts()) {
    const auto steps = site_.model().digest_steps(host);
    const auto [known, is_new] = digest_steps_.emplace(host, steps);
    if (!is_new && steps > known->second && !skipped_nodes_.contains(host)) {
      violation(fmt::format("the digest of {} is computed {} s after its hours ended", host,
                            kStopsWithin.count() / 1'000));
    }
    known->second = steps;
  }
}

void Judge::look() {
  const auto now = site_.world().now();
  if (!healed_at_ || now - *healed_at_ < 2 * kStopsWithin ||
      !denied_for(active_run_, kStopsWithin)) {
    digest_steps_.clear();
    return;
  }
  look_at_digests();
  if (scenario_.site.policy.pauses.on_close != planner::PauseRule::kStop) {
    return;
  }
  for (const auto& host : site_.model().hosts()) {
    const auto* process = site_.model().node(host);
    if (process != nullptr && process->running() && !process->running()->foreign &&
        !skipped_nodes_.contains(host) && site_.has_agents()) {
      violation(fmt::format("{} is still scavenged {} s after its hours ended", host,
                            kStopsWithin.count() / 1'000));
    }
  }
}

void Judge::at_the_end() {
  for (const auto& host : site_.model().hosts()) {
    const auto* process = site_.model().node(host);
    if (!run_state_.empty() && process != nullptr && process->priority() != 0 &&
        !skipped_nodes_.contains(host)) {
      violation(fmt::format("the run has ended, and {} still has the priority {}", host,
                            process->priority()));
    }
  }
  const auto& strategy = scavenge_of(scenario_.site.policy).strategy;
  if (run_state_ != "done" || strategy == planner::Strategy::kFollowersOnly) {
    return;
  }
  for (const auto& host : site_.model().hosts()) {
    if (skipped_nodes_.contains(host) || replaced_.contains(host)) {
      continue;
    }
    const auto& finished = site_.model().database(host).finished;
    if (finished.empty()) {
      violation(fmt::format("the run is done, {} has finished nothing", host));
    }
  }
}

}  // namespace verger::sim
