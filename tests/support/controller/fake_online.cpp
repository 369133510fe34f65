// Scavenges beside a running server, of the fake cluster's agents.
#include <nlohmann/json.hpp>

#include "tests/support/controller/fake_cluster.h"

namespace verger::test {

using nlohmann::json;

void FakeCluster::begin_online(FakeNode& node, FakeOperation& operation) {
  const auto parameters = json::parse(operation.request.parameters_json);
  if (!node.online_fails.empty()) {
    operation.status.state = api::OperationState::kFailed;
    operation.status.error_code = node.online_fails.front();
    operation.status.error = "as the test says";
    node.online_fails.erase(node.online_fails.begin());
    return;
  }
  ++node.online_starts;
  const auto now = time_.monotonic();
  node.online = FakeNode::Online{.operation = operation.request.id,
                                 .point = parameters.at("point").get<std::int64_t>(),
                                 .begins = now,
                                 .ends = now + scavenge_takes};
  operation.status.progress = api::OperationProgress{
      .phase = "switch", .done = 1, .total = 4, .unit = "chunks", .bytes = 262'144};
  operation.status.throttle =
      api::Throttle{.percent = parameters.at("throttlePercent").get<std::int32_t>()};
}

void FakeCluster::end_online(FakeNode& node, bool finished) {
  auto& status = node.operations.at(node.online->operation).status;
  status.state = finished ? api::OperationState::kDone : api::OperationState::kFailed;
  status.error_code = finished ? "" : "stopped";
  status.progress.reset();
  const auto number = node.online->point;
  status.result_json =
      json{{"point",
            {{"number", number}, {"position", points.at(static_cast<std::size_t>(number))}}},
           {"scavengeId", "00000000-0000-4000-8000-00000000000a"},
           {"spaceSaved", 70'000},
           {"recordsRemoved", 700},
           {"bytesBefore", 1'000'000},
           {"bytesAfter", 930'000},
           {"chunksSwitched", 4},
           {"chunksLeft", 0}}
          .dump();
  if (finished) {
    node.last_finished = number;
    node.unfinished.reset();
    ++node.finished[number];
  } else {
    node.unfinished = number;
  }
  node.online.reset();
}

}  // namespace verger::test
