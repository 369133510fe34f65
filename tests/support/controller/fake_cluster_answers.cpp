// What the nodes and agents of a FakeCluster answer.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_answer.h"
#include "tests/support/controller/fake_cluster.h"
#include "tests/support/member_case.h"

namespace verger::test {

using nlohmann::json;

namespace {

http::Response answer(int status, const json& body) {
  http::Response out;
  out.status = status;
  out.headers.set("Content-Type", "application/json; charset=utf-8");
  out.body = body.dump();
  return out;
}

http::Response plain(int status, std::string body) {
  http::Response out;
  out.status = status;
  out.headers.set("Content-Type", "text/plain; charset=utf-8");
  out.headers.set("Access-Control-Allow-Methods", "GET, OPTIONS");
  out.body = std::move(body);
  return out;
}

http::Response problem(int status, std::string_view code) {
  return answer(status, {{"status", status}, {"code", code}, {"detail", code}});
}

std::string permit_key(const std::string& run, const std::string& step) { return run + "|" + step; }

/// Its error says what became of what it had noted.
void stop_redaction(api::OperationStatus& status, bool keep) {
  if (status.state == api::OperationState::kActing && status.kind.ends_with("_redaction")) {
    status.state = api::OperationState::kFailed;
    status.error_code = "stopped";
    status.error = keep ? "stopped; notes kept" : "stopped; notes removed";
  }
}

}  // namespace

std::optional<http::Response> FakeCluster::work_answer(const http::Request& request) {
  const auto target = *http::parse_target(request.target);
  const auto& path = target.path;
  const bool projection = path.starts_with("/projection");
  const bool offered = projection ? projections.has_value() : subscriptions.has_value();
  if ((!projection && !path.starts_with("/subscriptions")) || !offered) {
    return std::nullopt;
  }
  if (!may_read_work) {
    http::Response denied;
    denied.status = 401;
    return denied;
  }
  if (path == "/projections/all-non-transient") {
    auto list = json::array();
    for (const auto& [name, status] : *projections) {
      list.push_back({{"name", name},
                      {"status", status},
                      {"stateReason", status == "Faulted" ? "out of cheese" : ""},
                      {"mode", name.starts_with("once") ? "OneTime" : "Continuous"}});
    }
    // Without a leader the real one does not answer.
    return leader() == nullptr ? plain(408, "") : answer(200, {{"projections", list}});
  }
  if (path == "/subscriptions") {
    auto list = json::array();
    for (const auto& [name, status] : *subscriptions) {
      const auto at = name.find("::");
      list.push_back({{"eventStreamId", name.substr(0, at)},
                      {"groupName", name.substr(at + 2)},
                      {"status", status}});
    }
    return leader() == nullptr ? answer(503, json::array()) : answer(200, list);
  }
  if (path.ends_with("/restart")) {
    work_started.emplace_back(projection ? "all projections" : "all subscriptions");
    return answer(200, "Restarting");
  }
  const auto& name = target.segments.at(1);
  if (!projections->contains(name)) {
    return plain(404, "Not Found");
  }
  work_started.push_back(name);
  return answer(200, {{"name", name}});
}

http::Response FakeCluster::node_answer(FakeNode& node, const http::Request& request) {
  const auto target = *http::parse_target(request.target);
  const auto& path = target.path;
  if (path == "/gossip") {
    return api::json_text_answer(200, api::to_text(gossip_of(node)));
  }
  if (auto work = work_answer(request)) {
    return *std::move(work);
  }
  if (path == "/metrics") {
    ++node.asked_for_metrics;
    if (!node.has_metrics) {
      http::Response nothing;
      nothing.status = 404;
      return nothing;
    }
    return plain(200, fmt::format("eventstore_statuses{{name=\"Index\",status=\"{}\"}} 1\n",
                                  node.index_merging ? "Merging" : "Idle"));
  }
  if (path.starts_with("/auto-scavenge/") && !auto_scavenge.empty()) {
    if (request.method == "GET") {
      return answer(200, {{"state", auto_scavenge}, {"schedule", "0 0 * * *"}});
    }
    auto_scavenge_asked.push_back(target.segments.back());
    auto_scavenge = target.segments.back() == "pause" ? "Paused" : "Waiting";
    return plain(200, "");
  }
  if (path == "/info/options" && !node.options.empty()) {
    auto options = json::array();
    for (const auto& [name, value] : node.options) {
      options.push_back({{"name", name}, {"value", value}});
    }
    return answer(200, options);
  }
  if (path == "/info") {
    return answer(200, {{"esVersion", node.version},
                        {"state", "leader"},
                        {"features", {{"atomPub", false}, {"userManagement", true}}},
                        {"authentication", {{"type", "internal"}, {"properties", json::array()}}}});
  }
  if (path == "/admin/scavenge/current" && request.method == "GET") {
    const auto id = node.running ? node.running->id : std::string();
    return answer(
        200, {{"scavengeId", id}, {"scavengeLink", id.empty() ? "" : "/admin/scavenge/" + id}});
  }
  if (path == "/admin/scavenge" && request.method == "POST") {
    if (node.running) {
      return plain(400, "Scavenge is already running");
    }
    if (node.chunk_lock_held > 0) {
      --node.chunk_lock_held;
      return plain(400, "Failed to acquire the chunk switch lock");
    }
    const auto sync_only = target.parameter("syncOnly");
    return answer(200, {{"scavengeId", start_scavenge(node, sync_only && *sync_only == "true")}});
  }
  if (path.starts_with("/admin/scavenge/") && request.method == "DELETE") {
    const auto& asked = target.segments.back();
    if (!node.running || (asked != "current" && node.running->id != asked)) {
      return plain(404, "Scavenge Id does not exist");
    }
    const auto id = node.running->id;
    end_scavenge(node, "Stopped");
    return answer(200, json(id));
  }
  if (path == "/admin/node/resign") {
    resign(node);
    return plain(200, "");
  }
  if (path.starts_with("/admin/node/priority/")) {
    node.priority = std::stoi(target.segments.back());
    return plain(200, "");
  }
  if (path == "/streams/$scavengePoints/head/backward/1") {
    http::Response refused;
    refused.status = points_answer;
    if (points_answer != 200) {
      return refused;
    }
    const auto seen = std::min(points.size(), node.visible_points.value_or(points.size()));
    return seen == 0 ? plain(404, "")
                     : answer(200, {{"entries",
                                     {{{"eventType", "$scavengePoint"},
                                       {"eventNumber", seen - 1},
                                       {"data", "{}"}}}}});
  }
  if (path.starts_with("/streams/$scavenges")) {
    auto entries = json::array();
    std::int64_t number = 0;
    for (const auto& each : nodes) {
      for (const auto& event : each.log) {
        if (target.segments.size() > 2 && target.segments[2] != event.scavenge_id) {
          continue;
        }
        const json data{{"scavengeId", event.scavenge_id},
                        {"nodeEndpoint", event.node_endpoint},
                        {"result", event.result},
                        {"error", event.error.empty() ? json() : json(event.error)},
                        {"timeTaken", "00:00:01"},
                        {"spaceSaved", 10},
                        {"maxChunkScavenged", 0}};
        entries.push_back({{"eventType", event.type},
                           {"eventNumber", number},
                           {"positionEventNumber", number},
                           {"data", data.dump()}});
        ++number;
      }
    }
    if (entries.empty()) {
      return answer(404, json::object());  // no such stream
    }
    std::ranges::reverse(entries);
    return answer(200, {{"entries", entries}});
  }
  return plain(404, "");
}

http::Response FakeCluster::start_operation(FakeNode& node, const http::Request& request) {
  auto parsed = api::parse_operation_request(request.body);
  if (!parsed) {
    return problem(400, "invalid");
  }
  if (!not_camel_case(json::parse(request.body)).empty()) {
    return problem(400, "not_camel_case");
  }
  if (const auto known = node.operations.find(parsed->id); known != node.operations.end()) {
    return api::json_text_answer(200, api::to_text(known->second.status));
  }
  if (parsed->controller_epoch < node.highest_epoch) {
    return problem(409, "stale_epoch");
  }
  const auto permit = node.permits.find(permit_key(parsed->run, parsed->step));
  if (permit == node.permits.end() || permit->second <= time_.monotonic()) {
    return problem(409, "no_permit");
  }
  if (!parsed->expected_instance_id.empty() && parsed->expected_instance_id != node.instance &&
      node.up) {
    return problem(409, "wrong_node");
  }
  FakeOperation operation;
  operation.request = *parsed;
  operation.status.id = parsed->id;
  operation.status.kind = parsed->kind;
  operation.status.state = api::OperationState::kActing;
  operation.status.accepted_at = "2024-06-02T00:00:00Z";
  operation.since = time_.monotonic();
  const auto parameters = json::parse(parsed->parameters_json);
  if (node.closed_at_last_look > 0) {
    --node.closed_at_last_look;
    operation.status.state = api::OperationState::kFailed;
    operation.status.error_code = "gate_closed";
    operation.status.error = "voters-alive: 2 voters are up and settled, 3 are needed";
  } else if (operate_certificates(node, operation) || begin_backup_work(node, operation) ||
             operate_restore(node, operation) || operate_size(node, operation) ||
             (operate_more && operate_more(node, operation))) {
    // its outcome is in the operation
  } else if (parsed->kind == "scavenge_point") {
    start_scavenge(node, false);
    const auto point = node.running->point;
    end_scavenge(node, "Stopped");
    operation.status.state = api::OperationState::kDone;
    operation.status.result_json =
        json{{"point",
              {{"number", point}, {"position", points.at(static_cast<std::size_t>(point))}}}}
            .dump();
  } else if (parsed->kind == "start_service" && node.files.failing_starts > 0) {
    --node.files.failing_starts;
    operation.status.state = api::OperationState::kFailed;
    operation.status.error_code = "no_answer";
    operation.status.error = "the server does not start";
  } else if (parsed->kind == "start_service") {
    if (!std::exchange(node.files.ordered_stop, {}).empty() && !node.up) {
      start_by_itself(node.name);
    } else if (!node.up) {
      if (node.offline) {
        end_offline(node, false);
      }
      for (auto& [id, other] : node.operations) {
        if (other.status.kind == "offline_backup") {
          end_backup_work(node, other, true);
        }
      }
      node.up = true;
      restart(node.name);
    }
    operation.status.state = api::OperationState::kDone;
  } else if (parsed->kind == "offline_scavenge") {
    if (node.state == api::NodeState::kLeader) {
      operation.status.state = api::OperationState::kFailed;
      operation.status.error_code = "conflict";
    }
  } else if (parsed->kind == "verify") {
    auto damage = json::array();
    for (const auto& file : node.damage) {
      damage.push_back(
          {{"file", file}, {"offset", 128}, {"text", "as the test says"}, {"remedy", "refill"}});
    }
    operation.status.state = api::OperationState::kDone;
    operation.status.result_json = json{
        {"chunkFiles", 5},
        {"chunkBytes", 1'000'000},
        {"records", 700},
        {"tables", 2},
        {"entries", 600},
        {"events", 600},
        {"damaged", node.damage.size()},
        {"damage", std::move(damage)},
        {"missingStreams", node.lost_streams},
        {"notes", json::array()}}.dump();
  } else if (parsed->kind == "heal_filter") {
    ++node.stops;
    restart(node.name);
    operation.status.state = api::OperationState::kDone;
    operation.status.result_json = json{
        {"lostBefore", std::exchange(node.lost_streams, 0)},
        {"lostAfter", 0},
        {"streamsRead", 20},
        {"notFound", json::array()}}.dump();
  } else if (parsed->kind == "online_scavenge") {
    begin_online(node, operation);
  } else if (parsed->kind == "scavenge") {
    if (node.running) {
      operation.status.state = api::OperationState::kFailed;
      operation.status.error_code = "scavenge_running";
    } else if (node.chunk_lock_held > 0) {
      --node.chunk_lock_held;
      operation.status.state = api::OperationState::kFailed;
      operation.status.error_code = "chunk_lock_held";
    } else {
      operation.scavenge_id = start_scavenge(node, parameters.at("syncOnly").get<bool>());
    }
  } else if (parsed->kind == "digest" && digest_failures > 0) {
    --digest_failures;
    operation.status.state = api::OperationState::kFailed;
    operation.status.error_code = "no_space";
    operation.status.error = "/agent: needs room";
  } else if (parsed->kind == "digest" && knows_digests) {
    auto requested =
        fmt::format("{} {}", parameters.at("readable").get<bool>() ? "readable" : "records",
                    parameters.at("throttlePercent").get<int>());
    if (node.digest_requests.empty() || node.digest_requests.back() != requested) {
      node.digest_requests.push_back(std::move(requested));
    }
    operation.status.throttle =
        api::Throttle{.percent = parameters.at("throttlePercent").get<std::int32_t>()};
    node.digest_since = time_.monotonic();
    const auto computing = std::ranges::count_if(
        nodes, [](const auto& each) { return each.digest_since.has_value(); });
    most_digests = std::max(most_digests, static_cast<std::size_t>(computing));
    look_at_digest(node, operation);
  } else if (parsed->kind == "resign") {
    resign(node);
    operation.status.state = api::OperationState::kDone;
  } else if (parsed->kind == "set_priority") {
    node.priority = parameters.at("priority").get<std::int32_t>();
    operation.status.state = api::OperationState::kDone;
  } else {
    return problem(400, "unknown_kind");
  }
  auto status = api::to_text(operation.status);
  const bool stops =
      parsed->kind == "offline_scavenge" && operation.status.state == api::OperationState::kActing;
  node.operations[parsed->id] = std::move(operation);
  if (stops) {
    begin_offline(node, parsed->id, parameters.at("point").get<std::int64_t>());
  }
  return api::json_text_answer(202, std::move(status));
}

void FakeCluster::look_at_digest(FakeNode& node, FakeOperation& operation) {
  const auto now = time_.monotonic();
  if (operation.status.state != api::OperationState::kActing || !node.digest_since) {
    return;
  }
  node.digest_done +=
      std::chrono::duration_cast<std::chrono::milliseconds>(now - *node.digest_since);
  node.digest_since = now;
  if (node.digest_done < digest_takes) {
    operation.status.progress = api::OperationProgress{.phase = "reading the log",
                                                       .done = node.digest_done.count(),
                                                       .total = digest_takes.count(),
                                                       .unit = "bytes"};
    return;
  }
  node.digest_since.reset();
  const auto parameters = json::parse(operation.request.parameters_json);
  const bool readable = parameters.at("readable").get<bool>();
  operation.status.state = api::OperationState::kDone;
  operation.status.progress.reset();
  operation.status.result_json =
      api::to_text(api::Digest{.point_number = parameters.at("point").get<std::int64_t>(),
                               .logical = node.digest,
                               .readable = readable ? node.readable_digest : "",
                               .chunks = {"c0", node.digest},
                               .readable_events = readable ? 0 : -1});
}

void FakeCluster::stop_digest(FakeNode& node, FakeOperation& operation, bool keep) {
  if (operation.status.state != api::OperationState::kActing) {
    return;
  }
  node.digest_requests.emplace_back(keep ? "stop keep" : "stop");
  node.digest_since.reset();
  if (!keep) {
    node.digest_done = {};
  }
  operation.status.state = api::OperationState::kCancelled;
  operation.status.error_code = "stopped";
  operation.status.progress.reset();
}

http::Response FakeCluster::agent_answer(FakeNode& node, const http::Request& request) {
  const auto target = *http::parse_target(request.target);
  const auto& path = target.path;
  if (path == "/agent/v1/facts") {
    const auto below = target.parameter("chunksBelow");
    return api::json_text_answer(
        200, api::to_text(facts_of(node, below ? std::stoll(std::string(*below)) : -1)));
  }
  if (path == "/agent/v1/permits") {
    const auto permit = api::parse_permit(request.body);
    if (!permit) {
      return problem(400, "invalid");
    }
    if (permit->controller_epoch < node.highest_epoch) {
      return problem(409, "stale_epoch");
    }
    if (permit->controller_epoch > node.highest_epoch) {
      node.permits.clear();
      node.highest_epoch = permit->controller_epoch;
    }
    node.permits[permit_key(permit->run, permit->step)] =
        time_.monotonic() + std::chrono::milliseconds(permit->valid_for_ms);
    return plain(204, "");
  }
  if (path == "/agent/v1/operations") {
    return start_operation(node, request);
  }
  if (auto answered = size_answer(node, request)) {
    return *std::move(answered);
  }
  if (auto answered = restorable_answer(node, request)) {
    return *std::move(answered);
  }
  if (certificates != nullptr) {
    if (auto answered = certificates->answer(node.name, request)) {
      return *std::move(answered);
    }
  }
  if (backups != nullptr) {
    if (auto answered = backups->answer(node.name, request)) {
      return *std::move(answered);
    }
  }
  if (path.starts_with("/agent/v1/operations/")) {
    const auto found = node.operations.find(target.segments[3]);
    if (found == node.operations.end()) {
      return problem(404, "not_found");
    }
    if (path.ends_with("/cancel") && FakeBackups::knows(found->second.status.kind)) {
      end_backup_work(node, found->second, true);
    }
    if (path.ends_with("/cancel") && node.offline && node.offline->operation == found->first) {
      end_offline(node, false);
    }
    if (path.ends_with("/cancel") && node.online && node.online->operation == found->first) {
      end_online(node, false);
    }
    if (path.ends_with("/cancel") && node.running &&
        node.running->id == found->second.scavenge_id) {
      end_scavenge(node, "Stopped");
    }
    if (path.ends_with("/cancel")) {
      cancel_restore(node, found->first);
      stop_redaction(found->second.status, target.parameter("keep") == "true");
    }
    if (found->second.later && time_.monotonic() >= found->second.later->first) {
      found->second.status = found->second.later->second;
      found->second.later.reset();
    }
    if (found->second.status.kind == "digest") {
      look_at_digest(node, found->second);
      if (path.ends_with("/cancel")) {
        stop_digest(node, found->second, target.parameter("keep") == "true");
      }
    }
    if (path.ends_with("/throttle") && found->second.status.throttle) {
      found->second.status.throttle = *api::parse_throttle(request.body);
    }
    return api::json_text_answer(200, api::to_text(found->second.status));
  }
  return plain(404, "");
}

}  // namespace verger::test
