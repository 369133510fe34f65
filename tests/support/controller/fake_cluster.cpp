#include "tests/support/controller/fake_cluster.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "nodeagent/api/backup_operations.h"

namespace verger::test {

using nlohmann::json;

FakeCluster::FakeCluster(VirtualTime& time, int voters) : time_(time) {
  for (int i = 1; i <= voters; ++i) {
    FakeNode node;
    node.name = fmt::format("n{}", i);
    node.index = i;
    node.instance = fmt::format("instance-{}-{}", i, next_id_++);
    node.state = i == 1 ? api::NodeState::kLeader : api::NodeState::kFollower;
    node.size.running = node.size.in_file = voters;
    nodes.push_back(std::move(node));
  }
}

void FakeCluster::add_replica() {
  FakeNode node;
  node.index = static_cast<int>(nodes.size()) + 1;
  node.name = fmt::format("n{}", node.index);
  node.instance = fmt::format("instance-{}-{}", node.index, next_id_++);
  node.state = api::NodeState::kReadOnlyReplica;
  node.read_only_replica = true;
  nodes.push_back(std::move(node));
}

void FakeCluster::add_spare(bool read_only_replica) {
  add_replica();
  auto& spare = nodes.back();
  spare.read_only_replica = read_only_replica;
  spare.up = false;
  spare.member = false;
  spare.state = api::NodeState::kUnknown;
  spare.writer = 0;
  spare.database.clear();
  spare.files.history.clear();
}

FakeNode& FakeCluster::node(const std::string& name) {
  const auto found = std::ranges::find(nodes, name, &FakeNode::name);
  if (found == nodes.end()) {
    throw std::logic_error("no node is called " + name);
  }
  return *found;
}

FakeNode* FakeCluster::leader() {
  const auto found = std::ranges::find(nodes, api::NodeState::kLeader, &FakeNode::state);
  return found == nodes.end() ? nullptr : &*found;
}

int FakeCluster::total_resigns() const {
  int out = 0;
  for (const auto& each : nodes) {
    out += each.resigns;
  }
  return out;
}

void FakeCluster::elect(const std::string& name) {
  for (auto& each : nodes) {
    if (!each.read_only_replica) {
      each.state = each.name == name ? api::NodeState::kLeader : api::NodeState::kFollower;
      each.files.catches_up_at.reset();
      if (sizes_differ_apart && each.size.running != node(name).size.running) {
        each.state = api::NodeState::kUnknown;
      }
    }
  }
  ++epoch;
  election_ends_.reset();
}

void FakeCluster::restart(const std::string& name) {
  auto& each = node(name);
  each.instance = fmt::format("instance-{}-{}", each.index, next_id_++);
  each.size.running = each.size.by_flag != 0 ? each.size.by_flag : each.size.in_file;
  each.priority = 0;
  if (each.running) {
    end_scavenge(each, "Interrupted");
  }
}

std::string FakeCluster::start_by_hand(const std::string& name) {
  return start_scavenge(node(name), true);
}

void FakeCluster::stop_by_hand(const std::string& name) { end_scavenge(node(name), "Stopped"); }

void FakeCluster::resign(FakeNode& node) {
  ++node.resigns;
  if (node.state != api::NodeState::kLeader) {
    return;
  }
  node.state = api::NodeState::kResigningLeader;
  resigning_ = node.name;
  election_ends_ = time_.monotonic() + election_takes;
}

void FakeCluster::finish_election() {
  election_ends_.reset();
  FakeNode* best = nullptr;
  for (auto& each : nodes) {
    if (each.read_only_replica || !each.up || (sizes_differ_apart && !has_own_quorum(each))) {
      continue;
    }
    if (resigner_wins > 0 && each.name == resigning_) {
      best = &each;
      break;
    }
    if (best == nullptr || each.priority > best->priority) {
      best = &each;
    }
  }
  if (resigner_wins > 0) {
    --resigner_wins;
  }
  if (best == nullptr) {
    return;
  }
  elect(best->name);
  for (auto& each : nodes) {
    if (!each.up && !each.files.ordered_stop.empty() && !each.read_only_replica) {
      each.state = api::NodeState::kUnknown;
    }
  }
}

void FakeCluster::pass_time() {
  const auto now = time_.monotonic();
  if (election_ends_ && now >= *election_ends_) {
    finish_election();
  }
  for (auto& each : nodes) {
    if (each.running && each.up && now >= each.running->ends) {
      const auto result = each.next_ends.empty() ? std::string("Success") : each.next_ends.front();
      if (!each.next_ends.empty()) {
        each.next_ends.erase(each.next_ends.begin());
      }
      end_scavenge(each, result);
    }
    if (each.offline && each.agent_up && now >= each.offline->ends) {
      end_offline(each, true);
    }
    if (each.online && each.agent_up && each.up && now >= each.online->ends) {
      end_online(each, true);
    }
    for (auto& [id, operation] : each.operations) {
      if (backups != nullptr && each.agent_up && FakeBackups::knows(operation.status.kind) &&
          now >= operation.since + backups->takes) {
        end_backup_work(each, operation, false);
      }
    }
  }
  look_at_sizes();
  look_at_histories();
}

void FakeCluster::begin_offline(FakeNode& node, const std::string& operation, std::int64_t point) {
  ++node.stops;
  node.up = false;
  node.offline = FakeNode::Offline{operation, point, time_.monotonic() + scavenge_takes};
  most_stopped = std::max(most_stopped, static_cast<int>(std::ranges::count_if(
                                            nodes, [](const FakeNode& each) { return !each.up; })));
}

void FakeCluster::end_offline(FakeNode& node, bool finished) {
  auto& status = node.operations.at(node.offline->operation).status;
  status.state = finished ? api::OperationState::kDone : api::OperationState::kFailed;
  status.error_code = finished ? "" : "stopped";
  status.result_json = json{{"bytesAfter", 900'000}}.dump();
  if (finished) {
    node.last_finished = node.offline->point;
    node.unfinished.reset();
    ++node.finished[node.offline->point];
  } else {
    node.unfinished = node.offline->point;
  }
  node.offline.reset();
  node.up = true;
  restart(node.name);
}

namespace {

std::string signature_of(const FakeNode& node) {
  return node.signs_as.empty() ? fmt::format("10.0.0.{}:2113", node.index) : node.signs_as;
}

}  // namespace

std::string FakeCluster::start_scavenge(FakeNode& node, bool sync_only) {
  ++node.scavenge_starts;
  auto id = fmt::format("00000000-0000-4000-8000-{:012d}", next_id_++);
  std::optional<std::int64_t> point;
  const auto latest = static_cast<std::int64_t>(
                          std::min(points.size(), node.visible_points.value_or(points.size()))) -
                      1;
  const auto done = node.last_finished.value_or(-1);
  const bool resumes = node.unfinished.has_value();
  if (node.unfinished) {
    point = node.unfinished;
  } else if (latest > done) {
    point = latest;
  } else if (!sync_only) {
    points.push_back(std::max<std::int64_t>(node.newest_chunk, 0) * 262'144 + 1'000 * (latest + 2));
    point = latest + 1;
  }
  api::ScavengeEvent started;
  started.type = "$scavengeStarted";
  started.scavenge_id = id;
  started.node_endpoint = signature_of(node);
  node.log.push_back(started);
  node.running = FakeScavenge{
      id, point.value_or(-1),
      time_.monotonic() + (point ? scavenge_takes : std::chrono::milliseconds(5)), resumes};
  if (point) {
    node.unfinished = point;
  }
  return id;
}

void FakeCluster::end_scavenge(FakeNode& node, const std::string& how) {
  // Up to 24.6 an error is an interruption with a text: "Interrupted: no space".
  const auto colon = how.find(": ");
  const auto result = how.substr(0, colon);
  const auto text = colon == std::string::npos ? std::string() : how.substr(colon + 2);
  const bool tells = node.resumes_quietly ? !node.running->resumed : result == "Success";
  if (tells && node.running->point >= 0) {
    api::ScavengeEvent table;  // a run that works reports what it rewrote
    table.type = "$scavengeIndexCompleted";
    table.scavenge_id = node.running->id;
    table.node_endpoint = signature_of(node);
    node.log.push_back(table);
  }
  api::ScavengeEvent end;
  end.type = "$scavengeCompleted";
  end.scavenge_id = node.running->id;
  end.node_endpoint = signature_of(node);
  end.result = result;
  end.error = !text.empty()             ? text
              : result == "Interrupted" ? "The node was restarted."
              : result == "Errored"     ? "There is not enough space on the disk."
                                        : "";
  node.log.push_back(end);
  if (result == "Success" && node.running->point >= 0) {
    node.last_finished = node.running->point;
    node.unfinished.reset();
    ++node.finished[node.running->point];
  }
  for (auto& [id, operation] : node.operations) {
    if (operation.scavenge_id == node.running->id) {
      const bool good = result == "Success";
      operation.status.state = good ? api::OperationState::kDone : api::OperationState::kFailed;
      operation.status.error_code = good                                   ? ""
                                    : result == "Stopped"                  ? "stopped"
                                    : result == "Errored" || !text.empty() ? "errored"
                                                                           : "interrupted";
      operation.status.result_json =
          json{{"scavengeId", node.running->id}, {"spaceSaved", 100}}.dump();
    }
  }
  node.running.reset();
}

net::awaitable<Result<std::string>> FakeCluster::served_chain(http::Endpoint of) {
  co_await time_.sleep_for(std::chrono::milliseconds(1));
  for (const auto& each : nodes) {
    if (of.host == fmt::format("10.0.0.{}", each.index) && each.up && certificates != nullptr) {
      co_return certificates->node(each.name).loaded.chain;
    }
  }
  co_return Error{Errc::kUnavailable, fmt::format("{}: connection refused", of.url())};
}

bool FakeCluster::operate_certificates(FakeNode& node, FakeOperation& operation) {
  if (certificates == nullptr) {
    return false;
  }
  const auto done =
      certificates->operate(node.name, operation.request.kind, operation.request.parameters_json);
  if (!done) {
    return false;
  }
  auto ended = operation.status;
  ended.state =
      done->error_code.empty() ? api::OperationState::kDone : api::OperationState::kFailed;
  ended.error_code = done->error_code;
  ended.error = done->error;
  ended.result_json = done->result;
  if (operation.request.kind == "certificate_switch" && switch_takes.count() > 0) {
    operation.later = std::pair(time_.monotonic() + switch_takes, std::move(ended));
  } else {
    operation.status = std::move(ended);
  }
  return true;
}

bool FakeCluster::begin_backup_work(FakeNode& node, FakeOperation& operation) {
  const auto& kind = operation.request.kind;
  if (backups == nullptr || !FakeBackups::knows(kind)) {
    return false;
  }
  operation.begun_at = time_.now();
  if (FakeBackups::copies(kind) && kind != api::kSnapshotBackupKind && node.running) {
    operation.status.state = api::OperationState::kFailed;
    operation.status.error_code = api::kSourceBusyCode;
    operation.status.error = "a scavenge runs";
  } else if (kind == "offline_backup") {
    ++node.stops;
    node.up = false;
  }
  return true;
}

void FakeCluster::end_backup_work(FakeNode& node, FakeOperation& operation, bool stopped) {
  auto& status = operation.status;
  if (status.state != api::OperationState::kActing) {
    return;
  }
  if (status.kind == "offline_backup") {
    node.up = true;
    restart(node.name);
  }
  if (stopped) {
    status.state = api::OperationState::kCancelled;
    status.error_code = "stopped";
    return;
  }
  if (FakeBackups::copies(status.kind) && status.kind != api::kSnapshotBackupKind && node.running) {
    ++copies_beside_scavenges;
    status.state = api::OperationState::kFailed;
    status.error_code = api::kSourceBusyCode;
    return;
  }
  auto ended = backups->finish(status.kind, operation.request.parameters_json,
                               {.node = node.name, .writer = node.writer, .epoch = epoch},
                               operation.begun_at);
  status.state =
      ended.error_code.empty() ? api::OperationState::kDone : api::OperationState::kFailed;
  status.error_code = std::move(ended.error_code);
  status.error = std::move(ended.error);
  status.result_json = std::move(ended.result);
}

net::awaitable<Result<http::Response>> FakeCluster::send(http::Endpoint to, http::Request request,
                                                         std::chrono::milliseconds deadline) {
  co_await time_.sleep_for(std::chrono::milliseconds(1));
  pass_time();
  FakeNode* node = nullptr;
  for (auto& each : nodes) {
    if (to.host == fmt::format("10.0.0.{}", each.index)) {
      node = &each;
    }
  }
  const bool to_agent = to.port == 2114;
  if (node == nullptr || (to_agent ? !agents || !node->agent_up : !node->up)) {
    co_return Error{Errc::kUnavailable, fmt::format("{}: connection refused", to.url())};
  }
  if (to_agent ? node->agent_hangs : node->hangs) {
    co_await time_.sleep_for(deadline);
    co_return Error{Errc::kUnknownOutcome, fmt::format("{}: no answer", to.url())};
  }
  const bool may_act = request.method != "GET";
  const auto what =
      may_act && fate ? fate(*node, request).value_or(Fate::kArrives) : Fate::kArrives;
  if (what == Fate::kRefusedConnection) {
    co_return Error{Errc::kUnavailable, fmt::format("{}: connection refused", to.url())};
  }
  if (what == Fate::kLost) {
    co_await time_.sleep_for(deadline);
    co_return Error{Errc::kUnknownOutcome, fmt::format("{}: no answer", to.url())};
  }
  auto response = to_agent ? agent_answer(*node, request) : node_answer(*node, request);
  if (may_act && acted) {
    acted(*node, request);
  }
  if (dress) {
    dress(*node, request, response);
  }
  co_await time_.sleep_for(what == Fate::kReplyLost ? deadline : std::chrono::milliseconds(1));
  if (what == Fate::kReplyLost) {
    co_return Error{Errc::kUnknownOutcome, fmt::format("{}: no answer", to.url())};
  }
  co_return response;
}

}  // namespace verger::test
