#include "tests/simulation/full/watcher.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"

namespace verger::sim {

using nlohmann::json;
namespace events = controller::events;

namespace {

/// A controller looks twice before it can say that a move held.
constexpr std::chrono::milliseconds kLook{1000};
/// Without an answer for longer, it cannot say that the leader was the same in between.
constexpr std::chrono::milliseconds kGap{1000};
constexpr std::chrono::milliseconds kScavengeBegins{1500};

}  // namespace

Watcher::Watcher(Cluster& cluster) : cluster_(cluster) {
  for (const auto name : kNodes) {
    nodes_.emplace(name, NodeHistory{});
  }
  cluster_.on_controller = [this](controller::Controller& started) { controller_started(started); };
}

Watcher::~Watcher() { cluster_.on_controller = nullptr; }

void Watcher::violation(std::string text) {
  if (said_.insert(text).second) {
    cluster_.trace().add(cluster_.world().now(), "", "VIOLATION " + text);
    violations_.push_back(std::move(text));
  }
}

const NodeHistory& Watcher::node(std::string_view name) const { return nodes_.find(name)->second; }

std::string Watcher::leader() const { return leading_; }

void Watcher::look() {
  for (const auto name : kNodes) {
    look_at(name);
  }
  std::string scavenged;
  for (const auto& [name, history] : nodes_) {
    if (!history.running || history.foreign) {
      continue;  // others cannot be kept from starting one beside ours
    }
    if (!scavenged.empty()) {
      violation(fmt::format("{} and {} are scavenged at the same time", scavenged, name));
    }
    scavenged = name;
  }
  for (const auto& name : cluster_.online.locked) {
    if (!scavenged.empty() && scavenged != name) {
      violation(fmt::format("{} and {} are scavenged at the same time", scavenged, name));
    }
    scavenged = name;
  }
  look_at_leader();
  if (journal_changed_) {
    if (auto* controller = cluster_.controller()) {
      read_journal(*controller);
    }
  }
}

void Watcher::look_at(std::string_view name) {
  auto& history = nodes_.find(name)->second;
  auto* node = cluster_.node(name);
  if (node == nullptr) {
    history.running.reset();
    history.state = api::NodeState::kUnknown;
    return;
  }
  history.state = node->state();
  auto instance = node->instance_id();
  const bool restarted = instance != history.instance;
  history.instance = std::move(instance);
  auto running = node->running_scavenge();
  const bool ran = history.running.has_value();
  if (running && history.running != running->id) {
    history.foreign = std::exchange(history.foreign_next, false);
  }
  history.running = running ? std::optional(std::move(running->id)) : std::nullopt;
  if (!ran && !history.running && !restarted && cluster_.world().now() > history.look_until) {
    return;
  }
  const auto before = history.unfinished;
  const auto unfinished = node->unfinished_scavenge();
  history.unfinished = unfinished ? std::optional(unfinished->point.number) : std::nullopt;
  if (before == history.unfinished) {
    return;
  }
  if (before) {
    const auto finished = node->last_finished_point();
    if (!finished || finished->number < *before) {
      // A power cut may undo a start that left nothing durable.
      if (!restarted) {
        violation(fmt::format("{}: the scavenge to point {} was given up", name, *before));
      }
    } else if (++history.finished[*before] > 1) {
      violation(
          fmt::format("{} finished point {} {} times", name, *before, history.finished[*before]));
    }
  }
  if (history.unfinished && history.finished.contains(*history.unfinished)) {
    violation(
        fmt::format("{}: point {} was finished and is not any more", name, *history.unfinished));
  }
}

void Watcher::look_at_leader() {
  const auto now = cluster_.world().now();
  for (const auto& [name, history] : nodes_) {
    if (history.state != api::NodeState::kLeader || history.instance == leading_instance_) {
      continue;
    }
    // An old leader that was cut off may still take itself for one: the newest epoch counts.
    const auto* old = leading_.empty() ? nullptr : cluster_.node(leading_);
    const auto* young = cluster_.node(name);
    if (old != nullptr && nodes_.find(leading_)->second.state == api::NodeState::kLeader &&
        nodes_.find(leading_)->second.instance == leading_instance_ &&
        old->positions().epoch_number >= young->positions().epoch_number) {
      continue;
    }
    cluster_.trace().add(now, name, "leads");
    leader_changes_ += leading_.empty() ? 0 : 1;
    leading_instance_ = history.instance;
    leading_ = name;
    leader_seen_.reset();
  }
}

void Watcher::leader_answered() {
  const auto now = cluster_.world().now();
  if (!leader_seen_ || now - leader_seen_last_ > kGap) {
    leader_seen_ = now;
  }
  leader_seen_last_ = now;
  if (!resigned_.empty() && leading_ != resigned_ && now - *leader_seen_ >= kLeaderHold + kLook) {
    moved_ = true;
  }
}

void Watcher::message(const testing::SimMessage& message) {
  if (message.kind == testing::SimMessage::Kind::kResponse && message.to == kController &&
      message.from == leading_ && message.port == kNodePort) {
    leader_answered();
  }
  if (message.kind == testing::SimMessage::Kind::kResponse && message.to == kMeddler &&
      message.status != 200 && message.target.starts_with("/admin/scavenge")) {
    nodes_.find(message.from)->second.foreign_next = false;
  }
  const auto found = nodes_.find(message.to);
  if (message.kind != testing::SimMessage::Kind::kRequest || message.port != kNodePort ||
      message.method != "POST" || found == nodes_.end()) {
    return;
  }
  auto& history = found->second;
  if (message.from == kMeddler) {
    if (message.target.starts_with("/admin/scavenge") && !history.running) {
      history.foreign_next = true;
      history.look_until = cluster_.world().now() + kScavengeBegins;
    }
    return;
  }
  if (message.target.starts_with("/admin/scavenge")) {
    ++history.starts_asked;
    history.look_until = cluster_.world().now() + kScavengeBegins;
  } else if (message.target.starts_with("/admin/node/resign") &&
             history.state == api::NodeState::kLeader) {
    ++history.resigns_asked;
    if (moved_) {
      violation(fmt::format("{} is asked to resign after a planned move has held", message.to));
    }
    if (history.instance == leading_instance_) {
      resigned_ = leading_;
    }
  }
}

void Watcher::controller_started(controller::Controller& controller) {
  journal_changed_ = true;
  leader_seen_.reset();
  subscription_ = controller.journal().subscribe(
      [this](controller::Sequence /*last*/) { journal_changed_ = true; });
  if (journal_.last_sequence == 0) {
    return;
  }
  const auto kept =
      controller.journal().read_all(controller::Sequence(journal_.last_sequence - 1), 1);
  if (!kept || kept->empty() || kept->front().hash != journal_.last_hash) {
    violation(fmt::format("the journal lost event {} which it had stored", journal_.last_sequence));
  }
}

void Watcher::read_journal(controller::Controller& controller) {
  const auto news = controller.journal().read_all(controller::Sequence(journal_.last_sequence));
  if (!news) {
    return;  // its disk has just gone; the next controller is read again
  }
  journal_changed_ = false;
  for (const auto& event : *news) {
    journal_.last_sequence = event.sequence.value();
    journal_.last_hash = event.hash;
    cluster_.trace().add(cluster_.world().now(), kController,
                         fmt::format("JOURNAL {} {} {}", event.stream, event.type, event.data));
    if (event.stream.starts_with("run/")) {
      journaled(event);
    }
  }
}

void Watcher::journaled(const controller::JournalEvent& event) {
  const auto data = json::parse(event.data, nullptr, false);
  const auto text = [&data](const char* name) { return data.value(name, std::string()); };
  if (event.type == events::kStepIntended) {
    const auto step = text("step");
    const auto operation = text("operation");
    if (!journal_.operations.insert(operation).second) {
      violation(fmt::format("operation {} is intended twice", operation));
    }
    if (const auto open = journal_.open_intents.find(step); open != journal_.open_intents.end()) {
      violation(fmt::format("step {} is intended again while the outcome of {} is not known", step,
                            open->second));
    }
    journal_.open_intents[step] = operation;
    ++journal_.attempts[step];
  } else if (event.type == events::kUndoIntended) {
    journal_.operations.insert(text("operation"));
  } else if (event.type == events::kStepRetry || event.type == events::kStepInterrupted ||
             event.type == events::kStepFailed || event.type == events::kStepSkipped) {
    journal_.open_intents.erase(text("step"));
  } else if (event.type == events::kStepDone) {
    const auto step = text("step");
    journal_.open_intents.erase(step);
    for (const auto name : kNodes) {
      for (const auto* prefix : {"scavenge-", "adopt-", "finish-", "online-"}) {
        if (step == fmt::format("{}{}", prefix, name)) {
          claimed_scavenged(std::string(name), data.value("result", json()).dump(), step);
        }
      }
    }
  } else if (event.type == events::kLeaderMoved) {
    if (data.value("planned", false)) {
      moved_ = true;
      if (++journal_.planned_moves > 1) {
        violation("the journal has a second planned move of the leader");
      }
    }
  } else if (event.type == events::kRunEnded) {
    journal_.run_state = text("state");
    journal_.run_reason = text("reason");
  }
}

void Watcher::claimed_scavenged(const std::string& node, const std::string& result,
                                std::string_view step) {
  const auto parsed = json::parse(result, nullptr, false);
  const auto point = parsed.is_object() ? parsed.value("point", json()) : json();
  if (!point.is_object()) {
    violation(fmt::format("{} is done without a point: {}", step, result));
    return;
  }
  const auto number = point.value("number", std::int64_t{-1});
  const auto& history = nodes_.find(node)->second;
  if (!history.finished.contains(number)) {
    violation(
        fmt::format("{} is reported done, but {} has not finished point {}", step, node, number));
  }
}

}  // namespace verger::sim
