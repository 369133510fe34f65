#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/client/judge.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/fresh_look.h"
#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/scavenge/scavenge_operations.h"
#include "nodeagent/operations/server_return.h"

namespace verger::agent {
namespace {

using nlohmann::json;

struct Parameters {
  std::int64_t point = -1;
  std::int32_t threads = 1;
  /// For the server's stop, and again until it answers after its start.
  std::chrono::milliseconds service_deadline = kServiceDeadline;
};

Result<Parameters> parse(const OperationRecord& record) {
  const auto asked = json::parse(record.request.parameters_json, nullptr, false);
  if (!asked.is_object() || !asked.contains("point") || !asked["point"].is_number_integer()) {
    return Error{Errc::kInvalidArgument,
                 "parameters of offline_scavenge: \"point\", the number of a scavenge point in the "
                 "log, is missing"};
  }
  Parameters out{.point = asked["point"].get<std::int64_t>()};
  const auto threads = asked.value("threads", json(1));
  if (!threads.is_number_integer() || threads < 1 || threads > 4) {
    return Error{Errc::kInvalidArgument, "threads must be 1 to 4"};
  }
  out.threads = threads.get<std::int32_t>();
  const auto deadline = asked.value("serviceDeadlineMs", json(kServiceDeadline.count()));
  if (!deadline.is_number_integer() || deadline < 1) {
    return Error{Errc::kInvalidArgument, "serviceDeadlineMs must be 1 or more"};
  }
  out.service_deadline = std::chrono::milliseconds(deadline.get<std::int64_t>());
  return out;
}

/// act() stops the server, scavenges and starts it again, even when the scavenge failed. A server
/// that is still on its way down is not started: that would do nothing. observe() goes by the
/// files: as long as nothing answers and no process has them open it starts the server, also after
/// an agent that died in the middle; the state database shows how far the scavenge got.
class OfflineScavengeOperation final : public Operation {
 public:
  [[nodiscard]] std::string_view kind() const override { return "offline_scavenge"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return {"point", "threads", "serviceDeadlineMs"};
  }
  [[nodiscard]] bool works_on_files() const override { return true; }
  [[nodiscard]] bool blocks_shutdown() const override { return true; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY(const auto parameters, parse(record));
    if (node.offline == nullptr || !node.offline->configured()) {
      co_return Error{Errc::kUnsupported,
                      "the agent has no way to start and stop its server (--service-unit, or "
                      "--start-command and --stop-command)"};
    }
    if (auto why = node.offline->wrong_user(); !why.empty()) {
      co_return Error{Errc::kUnauthorized, std::move(why)};
    }
    const auto* inspection = node.inspection();
    if (inspection == nullptr) {
      co_return Error{Errc::kUnavailable, "the server does not answer, so its state is unknown"};
    }
    const auto gossip = client::to_result(co_await node.client.gossip());
    VERGER_CO_TRY(const auto self,
                  gossip ? client::to_result(client::own_entry(*gossip, node.client.node()))
                         : Result<api::GossipMember>(gossip.error()));
    if (self.state == api::NodeState::kLeader && gossip->members.size() > 1) {
      co_return Error{Errc::kConflict, "the node leads; it must resign before it is stopped"};
    }
    VERGER_CO_TRY(const auto current, client::to_result(co_await node.client.current_scavenge()));
    if (!current.id.empty()) {
      co_return Error{Errc::kConflict,
                      fmt::format("scavenge {} is running on this node", current.id)};
    }
    VERGER_CO_TRY(const auto points, inspection->scavenge_points());
    const auto point = std::ranges::find_if(
        points, [&](const auto& each) { return each.number.value() == parameters.point; });
    if (point == points.end() || point->position.value() > self.last_commit_position) {
      co_return Error{Errc::kNotFound,
                      fmt::format("scavenge point {} is not in the committed log of this node",
                                  parameters.point)};
    }
    const auto chunk_size = inspection->chunks().chunk_size;
    if (chunk_size > 0 && point->position.value() / chunk_size >=
                              inspection->positions().writer.value() / chunk_size) {
      co_return Error{Errc::kConflict,
                      fmt::format("the chunk with scavenge point {} is not complete on this node",
                                  parameters.point)};
    }
    record.memory_json = json{{"bytes_before", inspection->chunks().total_bytes}}.dump();
    co_return Result<void>();
  }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY(const auto parameters, parse(record));
    auto memory = memory_of(record);
    auto worked = co_await node.offline->stop(parameters.service_deadline);
    if (worked) {
      worked = co_await node.offline->scavenge(parameters.point, parameters.threads);
      const auto did = node.offline->last_scavenged();
      memory["space_saved"] = did.space_saved;
      memory["records_removed"] = did.records_removed;
    }
    if (!worked) {
      memory["error"] = worked.error().message;
      memory["code"] = worked.error().code == Errc::kCancelled ? "stopped" : "interrupted";
    }
    const auto free = co_await node.offline->files_are_free();
    if (free && *free && co_await node.offline->start()) {
      note_server_start(node, memory);
    }
    record.memory_json = memory.dump();
    co_return Result<void>();
  }

  /// The engine stops between two steps; then the server is started as after a whole scavenge.
  net::awaitable<bool> cancel(LocalNode node, OperationRecord& /*record*/) override {
    if (node.offline != nullptr) {
      node.offline->interrupt();
    }
    co_return node.offline != nullptr;
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) override {
    auto memory = memory_of(record);
    const auto unknown = [](std::string why) {
      return Observation{.kind = Observation::Kind::kUnknown, .code = {}, .text = std::move(why)};
    };
    const auto gossip = client::to_result(co_await node.client.gossip());
    const auto self = gossip ? client::to_result(client::own_entry(*gossip, node.client.node()))
                             : Result<api::GossipMember>(gossip.error());
    const auto parameters = parse(record);
    if (!self || node.inspection() == nullptr) {
      if (node.offline == nullptr) {
        co_return unknown(
            "the server does not answer, and the agent no longer knows how to start it "
            "(--service-unit, or --start-command and --stop-command)");
      }
      auto seen = co_await await_server(
          node, memory, parameters ? parameters->service_deadline : kServiceDeadline);
      record.memory_json = memory.dump();
      co_return seen;
    }
    const auto behind = not_caught_up(*gossip, *self, memory);
    record.memory_json = memory.dump();
    if (!behind.empty()) {
      co_return Observation{.kind = Observation::Kind::kRunning, .code = {}, .text = behind};
    }
    const auto looked = co_await fresh_look(node);
    if (!looked) {
      co_return unknown(looked.error().message);
    }
    const auto* inspection = *looked;
    const auto finished = inspection->last_finished_point();
    if (parameters && finished && finished->number >= parameters->point) {
      co_return Observation{.kind = Observation::Kind::kDone,
                            .code = {},
                            .text = json{{"point",
                                          {{"number", finished->number},
                                           {"position", finished->position},
                                           {"effectiveNow", finished->effective_now},
                                           {"threshold", finished->threshold}}},
                                         {"spaceSaved", counted(memory, "space_saved")},
                                         {"recordsRemoved", counted(memory, "records_removed")},
                                         {"bytesBefore", memory.value("bytes_before", -1)},
                                         {"bytesAfter", inspection->chunks().total_bytes}}
                                        .dump()};
    }
    co_return Observation{
        .kind = Observation::Kind::kFailed,
        .code = memory.value("code", std::string("interrupted")),
        .text = memory.value("error", std::string("the agent ended in the middle; the next "
                                                  "scavenge resumes where it stopped"))};
  }

 private:
  /// Null where the agent died before it was noted.
  static json counted(const json& memory, const char* name) {
    return memory.value("records_removed", std::int64_t{-1}) < 0 ? json() : memory[name];
  }

  /// What the leader has at one look ("goal" of the memory), the node has to have at a later one,
  /// received, processed and indexed (node-interface.md §3.7): a busy leader is always ahead.
  static std::string not_caught_up(const api::Gossip& gossip, const api::GossipMember& self,
                                   json& memory) {
    if (self.state != api::NodeState::kFollower && self.state != api::NodeState::kLeader &&
        self.state != api::NodeState::kReadOnlyReplica) {
      return fmt::format("the server is {}", api::to_string(self.state));
    }
    const auto leader = std::ranges::find_if(gossip.members, [](const api::GossipMember& member) {
      return member.is_alive && member.state == api::NodeState::kLeader;
    });
    if (self.state == api::NodeState::kLeader) {
      return {};
    }
    if (leader == gossip.members.end()) {
      return "the server runs, and no node leads";
    }
    const json known = memory.value("goal", json::object());
    if (known.value("epoch", -1) != leader->epoch_number) {
      memory["goal"] = {{"epoch", leader->epoch_number},
                        {"writer", leader->writer_checkpoint},
                        {"commit", leader->last_commit_position}};
      return "the server has joined its leader";
    }
    const auto has = [](std::int64_t position, std::int64_t goal) {
      return position < 0 || position >= goal;
    };
    const auto writer = known.value("writer", std::int64_t{-1});
    if (self.epoch_number != leader->epoch_number || !has(self.writer_checkpoint, writer) ||
        !has(self.chaser_checkpoint, writer) ||
        !has(self.last_commit_position, known.value("commit", std::int64_t{-1}))) {
      return fmt::format("the server catches up to position {}", writer);
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Operation> make_offline_scavenge_operation() {
  return std::make_unique<OfflineScavengeOperation>();
}

}  // namespace verger::agent
