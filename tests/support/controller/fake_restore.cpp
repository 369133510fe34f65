// Stops, restores and starts of a FakeCluster's nodes.
#include "tests/support/controller/fake_restore.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/api/backup_operations.h"
#include "nodeagent/api/json_answer.h"
#include "tests/support/controller/fake_cluster.h"

namespace verger::test {

using nlohmann::json;

namespace {

void fail(api::OperationStatus& status, std::string code, std::string text) {
  status.state = api::OperationState::kFailed;
  status.error_code = std::move(code);
  status.error = std::move(text);
}

}  // namespace

std::optional<http::Response> FakeCluster::restorable_answer(const FakeNode& node,
                                                             const http::Request& request) {
  const auto target = *http::parse_target(request.target);
  if (target.path == "/agent/v1/backups/repositories" && knows_restores) {
    std::vector<api::BackupRepository> list;
    if (node.files.has_repository) {
      api::BackupRepository repository;
      repository.name = "main";
      repository.location = "/backup";
      repository.id = node.files.repository_id;
      repository.error = node.files.repository_error;
      list.push_back(std::move(repository));
    }
    return api::json_text_answer(200, api::to_text(list));
  }
  if (target.path == "/agent/v1/backups" && knows_restores) {
    auto list = restorable;
    for (auto& each : list) {
      each.damage = node.files.generation_damage;
    }
    return api::json_text_answer(200, api::to_text(list));
  }
  return std::nullopt;
}

void FakeCluster::stop_server(FakeNode& node, const std::string& operation) {
  node.files.ordered_stop = operation;
  node.files.catches_up_at.reset();
  if (!node.up) {
    return;
  }
  ++node.stops;
  node.up = false;
  const bool led = node.state == api::NodeState::kLeader;
  if (!node.read_only_replica) {
    node.state = api::NodeState::kUnknown;
  }
  if (led) {
    begin_election_if_possible();
  }
}

void FakeCluster::begin_election_if_possible() {
  const auto votes = [](const FakeNode& each) { return each.member && !each.read_only_replica; };
  const auto up = std::ranges::count_if(
      nodes, [&votes](const FakeNode& each) { return votes(each) && each.up; });
  const bool led = std::ranges::any_of(
      nodes, [](const FakeNode& each) { return each.up && each.state == api::NodeState::kLeader; });
  if (sizes_differ_apart && std::ranges::none_of(nodes, [&](const FakeNode& each) {
        return votes(each) && each.up && has_own_quorum(each);
      })) {
    return;
  }
  if (!led && up >= std::ranges::count_if(nodes, votes) / 2 + 1 && !election_ends_) {
    election_ends_ = time_.monotonic() + election_takes;
  }
}

void FakeCluster::start_by_itself(const std::string& name) {
  auto& started = node(name);
  const bool none_runs = std::ranges::none_of(nodes, [](const FakeNode& each) { return each.up; });
  if (none_runs && started.files.history != "own") {
    epoch = restored_epoch;
  }
  if (started.files.restoring) {
    fail(started.operations.at(started.files.restoring->operation).status, "refused",
         "the server runs");
    started.files.restoring.reset();
  }
  started.files.ordered_stop.clear();
  ++started.files.starts;
  started.up = true;
  started.member = true;
  restart(name);
  const auto* leads = leader();
  if (leads != nullptr && leads->up && sizes_differ_apart &&
      leads->size.running != started.size.running) {
    started.state = api::NodeState::kUnknown;
  } else if (leads != nullptr && leads->up) {
    started.state = started.read_only_replica ? api::NodeState::kPreReadOnlyReplica
                                              : api::NodeState::kCatchingUp;
    started.files.catches_up_at = time_.monotonic() + catch_up_takes;
  } else {
    if (!started.read_only_replica) {
      started.state = api::NodeState::kUnknown;
    }
    begin_election_if_possible();
  }
}

void FakeCluster::look_at_histories() {
  const auto now = time_.monotonic();
  std::string history;
  for (auto& each : nodes) {
    auto& files = each.files;
    if (files.restoring && each.agent_up && now >= files.restoring->ends) {
      finish_restore(each);
    }
    const auto* leads = leader();
    if (files.catches_up_at && now >= *files.catches_up_at && leads != nullptr && leads->up) {
      each.writer = leads->writer;
      files.history = leads->files.history;
      each.state =
          each.read_only_replica ? api::NodeState::kReadOnlyReplica : api::NodeState::kFollower;
      files.catches_up_at.reset();
    }
    if (each.up) {
      mixed_histories = mixed_histories || (!history.empty() && history != files.history);
      history = files.history;
    }
  }
}

void FakeCluster::finish_restore(FakeNode& node) {
  auto& files = node.files;
  auto& status = node.operations.at(files.restoring->operation).status;
  status.progress.reset();
  if (files.failing_restores > 0) {
    --files.failing_restores;
    fail(status, "io", "blob 7f is not readable");
  } else {
    ++files.restores;
    files.kept = FakeFiles::Kept{
        .generation = files.restoring->generation, .history = files.history, .writer = node.writer};
    files.history = files.restoring->generation;
    if (node.database.empty()) {
      node.database = nodes.front().database;
    }
    const auto backup = std::ranges::find(restorable, files.history, &api::BackupGeneration::id);
    node.writer = backup == restorable.end() ? 0 : backup->end_position;
    status.state = api::OperationState::kDone;
    status.result_json =
        api::to_text(api::Restored{.bytes = 1'000'000,
                                   .duration_ms = restore_takes.count(),
                                   .end_position = node.writer,
                                   .old_files = "/db/old-before-" + files.history});
  }
  files.restoring.reset();
}

bool FakeCluster::operate_restore(FakeNode& node, FakeOperation& operation) {
  const auto& kind = operation.request.kind;
  auto& status = operation.status;
  auto& files = node.files;
  const bool on_stopped = kind == api::kRestoreKind || kind == api::kRestoreRevertKind;
  if (kind != api::kStopServerKind && kind != api::kRestoreDiscardOldKind && !on_stopped) {
    return false;
  }
  status.state = api::OperationState::kDone;
  if (on_stopped && node.up) {
    fail(status, "refused", "the server runs");
  } else if (files.restoring) {
    fail(status, "conflict", "another operation works on the node's files");
  } else if (kind == api::kStopServerKind) {
    status.result_json = json{{"ran", node.up}}.dump();
    stop_server(node, operation.request.id);
  } else if (kind == api::kRestoreKind) {
    const auto wanted =
        api::parse_backup_parameters<api::RestoreParameters>(operation.request.parameters_json);
    if (!wanted || !wanted->keep_old || wanted->repository != "main") {
      fail(status, "invalid", wanted ? "not as the plan has it" : wanted.error().message);
      return true;
    }
    if (files.kept && files.kept->generation == wanted->generation) {
      fail(status, "refused", "it holds the files from before an earlier restore of this backup");
      return true;
    }
    status.state = api::OperationState::kActing;
    status.progress = api::OperationProgress{.phase = "copying", .done = 0, .total = 10};
    files.restoring = FakeFiles::Restoring{.operation = operation.request.id,
                                           .generation = wanted->generation,
                                           .ends = time_.monotonic() + restore_takes};
  } else if (kind == api::kRestoreRevertKind && files.failing_reverts > 0) {
    --files.failing_reverts;
    fail(status, "io", "old-before-g1 cannot be moved");
  } else if (kind == api::kRestoreRevertKind) {
    ++files.reverts;
    if (files.kept) {
      files.history = files.kept->history;
      node.writer = files.kept->writer;
      files.kept.reset();
    }
  } else {
    status.result_json = json{{"bytes", files.kept ? 900'000 : 0}}.dump();
    files.kept.reset();
  }
  return true;
}

void FakeCluster::cancel_restore(FakeNode& node, const std::string& operation) {
  if (!node.files.restoring || node.files.restoring->operation != operation) {
    return;
  }
  node.files.restoring.reset();
  auto& status = node.operations.at(operation).status;
  status.progress.reset();
  status.state = api::OperationState::kCancelled;
  status.error_code = "stopped";
}

}  // namespace verger::test
