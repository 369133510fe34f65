// Cluster sizes of a FakeCluster's nodes.
#include "tests/support/controller/fake_sizes.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_answer.h"
#include "nodeagent/api/server_config.h"
#include "tests/support/controller/fake_cluster.h"

namespace verger::test {
namespace {

bool counts(const FakeNode& node) { return node.up && !node.read_only_replica; }

void end_failed(api::OperationStatus& status, std::string code, std::string text) {
  status.state = api::OperationState::kFailed;
  status.error_code = std::move(code);
  status.error = std::move(text);
}

}  // namespace

std::optional<http::Response> FakeCluster::size_answer(const FakeNode& node,
                                                       const http::Request& request) {
  if (!request.target.ends_with("/server-config") || !node.size.known) {
    return std::nullopt;
  }
  return api::json_text_answer(
      200, api::to_text(api::ServerConfig{.path = "/etc/server.conf",
                                          .problem = node.size.problem,
                                          .cluster_size = node.size.in_file,
                                          .reported = node.up ? node.size.running : 0,
                                          .seeds = node.size.seeds}));
}

bool FakeCluster::operate_size(FakeNode& node, FakeOperation& operation) {
  const auto& kind = operation.request.kind;
  auto& status = operation.status;
  auto& size = node.size;
  if (kind != api::kServerSizeKind && kind != api::kServerSizeRestoreKind) {
    return false;
  }
  if (size.restarting) {
    end_failed(status, "gate_closed", "another operation works on the node's files");
    return true;
  }
  if (kind == api::kServerSizeKind) {
    const auto wanted = *api::parse_server_size(operation.request.parameters_json);
    if (size.in_file != wanted.from && size.change != wanted.change) {
      end_failed(status, "conflict", "the file has another size");
      return true;
    }
    if (size.failing > 0) {
      --size.failing;
      end_failed(status, "no_effect", "it reports the former size");
      return true;
    }
    if (size.change != wanted.change) {
      size.change = wanted.change;
      size.before = size.in_file;
      size.seeds_before = size.seeds;
    }
    size.in_file = wanted.to;
    for (const auto& each : wanted.add_seeds) {
      size.seeds.push_back(each);
    }
    std::erase_if(size.seeds, [&](const std::string& each) {
      return std::ranges::find(wanted.remove_seeds, each) != wanted.remove_seeds.end();
    });
    ++size.changes;
  } else {
    const auto wanted = *api::parse_server_size_restore(operation.request.parameters_json);
    if (size.failing_restores > 0) {
      --size.failing_restores;
      end_failed(status, "conflict", "the file was changed by someone else meanwhile");
      return true;
    }
    if (size.change != wanted.change || size.in_file == size.before) {
      status.state = api::OperationState::kDone;
      status.result_json =
          api::to_text(api::ServerSizeChanged{.size = size.in_file, .instance = node.instance});
      return true;
    }
    size.in_file = size.before;
    size.seeds = size.seeds_before;
    ++size.restores;
  }
  stop_server(node, operation.request.id);
  node.files.ordered_stop.clear();  // what is down is expected back
  size.restarting = FakeSize::Restarting{.operation = operation.request.id,
                                         .ends = time_.monotonic() + restart_takes};
  return true;
}

void FakeCluster::look_at_sizes() {
  const auto now = time_.monotonic();
  for (auto& node : nodes) {
    if (node.size.restarting && node.agent_up && now >= node.size.restarting->ends) {
      auto& status = node.operations.at(node.size.restarting->operation).status;
      node.size.restarting.reset();
      if (!node.up) {
        start_by_itself(node.name);
      }
      status.state = api::OperationState::kDone;
      status.result_json = api::to_text(api::ServerSizeChanged{.size = node.size.running,
                                                               .instance = node.instance,
                                                               .seeds = "changed",
                                                               .restarted = true});
    }
  }
  // Two disjoint sets of running voters, each a quorum of one of its members' sizes.
  std::vector<int> quorums;
  for (const auto& node : nodes) {
    if (counts(node)) {
      quorums.push_back(node.size.running / 2 + 1);
    }
  }
  std::ranges::sort(quorums);
  two_quorums = two_quorums ||
                (quorums.size() > 1 && quorums[0] + quorums[1] <= static_cast<int>(quorums.size()));
  if (!sizes_differ_apart) {
    return;
  }
  for (auto& node : nodes) {
    if (node.up && node.state == api::NodeState::kLeader && !has_own_quorum(node)) {
      node.state = api::NodeState::kUnknown;
      for (auto& other : nodes) {
        if (counts(other)) {
          other.state = api::NodeState::kUnknown;
        }
      }
    }
  }
  begin_election_if_possible();
}

bool FakeCluster::has_own_quorum(const FakeNode& node) const {
  return std::ranges::count_if(nodes, [&node](const FakeNode& each) {
           return counts(each) && each.size.running == node.size.running;
         }) >= node.size.running / 2 + 1;
}

}  // namespace verger::test
