#include "nodeagent/operations/jobs/stopped_server_operation.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
#include "nodeagent/client/judge.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/fresh_look.h"
#include "nodeagent/operations/heal/drop_filter_job.h"
#include "nodeagent/operations/server_return.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// What the leader has at one look ("goal" of the memory), the node has to have at a later one,
/// received, processed and indexed (node-interface.md §3.7): a busy leader is always ahead.
std::string not_caught_up(const api::Gossip& gossip, const api::GossipMember& self, json& memory) {
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

Observation not_known_yet(std::string why) {
  return {.kind = Observation::Kind::kUnknown, .code = {}, .text = std::move(why)};
}

}  // namespace

std::vector<std::string_view> StoppedServerOperation::parameters() const {
  auto out = own_parameters();
  out.insert(out.end(), {kServiceDeadlineParameter, kHealFilterParameter, kThrottleParameter,
                         kBytesParameter});
  return out;
}

net::awaitable<Result<void>> StoppedServerOperation::look(LocalNode node, OperationRecord& record) {
  VERGER_CO_RETURN_IF_ERROR(service_deadline(record));
  VERGER_CO_RETURN_IF_ERROR(heals_filter(record));
  VERGER_CO_RETURN_IF_ERROR(needs_service_control(node));
  if (auto why = node.offline->wrong_user(); !why.empty()) {
    co_return Error{Errc::kUnauthorized, std::move(why)};
  }
  if (node.inspection() == nullptr) {
    co_return Error{Errc::kUnavailable, "the server does not answer, so its state is unknown"};
  }
  const auto gossip = client::to_result(co_await node.client.gossip());
  VERGER_CO_TRY(const auto self,
                gossip ? client::to_result(client::own_entry(*gossip, node.client.node()))
                       : Result<api::GossipMember>(gossip.error()));
  if (self.state == api::NodeState::kLeader && gossip->members.size() > 1) {
    co_return Error{Errc::kConflict, "the node leads; it must resign before it is stopped"};
  }
  auto memory = json::object();
  VERGER_CO_RETURN_IF_ERROR(co_await check(node, self, record, memory));
  record.memory_json = memory.dump();
  co_return Result<void>();
}

net::awaitable<Result<void>> StoppedServerOperation::act(LocalNode node, OperationRecord& record) {
  VERGER_CO_TRY(const auto deadline, service_deadline(record));
  const auto control = node.control;
  auto memory = memory_of(record);
  if (control->stopping()) {
    memory["error"] = "stopped before the server was";
    memory["code"] = "stopped";
    record.memory_json = memory.dump();
    co_return Result<void>();
  }
  control->report({.phase = "stopping the server"});
  VERGER_FAILPOINT("agent.stopped-server.before-stop");
  auto worked = co_await node.offline->stop(deadline, control->stop_flag());
  if (worked) {
    VERGER_FAILPOINT("agent.stopped-server.stopped");
    auto job = make_job(node, record);
    worked = job ? Result<void>() : Result<void>(job.error());
    if (worked) {
      const auto paced =
          std::make_shared<PacedJob>(*job, control, node.clock, PacedJob::Lease::kNone);
      worked = co_await node.offline->run(paced, control->stop_flag());
    }
    if (worked) {
      keep_result(**job, memory);
    }
    if (job) {
      static_cast<void>(co_await node.offline->run(last_reference_to(std::exchange(*job, nullptr)),
                                                   std::make_shared<node::StopFlag>()));
    }
    if (worked) {
      co_await drop_filter_if_asked(node, record);
    }
  }
  if (!worked) {
    memory["error"] = worked.error().message;
    memory["code"] = worked.error().code == Errc::kCancelled ? "stopped" : "interrupted";
  }
  control->report({.phase = "starting the server"});
  VERGER_FAILPOINT("agent.stopped-server.before-start");
  const auto free = co_await node.offline->files_are_free();
  if (free && *free) {
    static_cast<void>(co_await start_server(node, memory));  // observe() tries again
  }
  VERGER_FAILPOINT("agent.stopped-server.started");
  record.memory_json = memory.dump();
  co_return Result<void>();
}

net::awaitable<Result<void>> StoppedServerOperation::look_after(LocalNode /*node*/,
                                                                const OperationRecord& /*record*/,
                                                                json& /*memory*/) {
  co_return Result<void>();
}

net::awaitable<bool> StoppedServerOperation::cancel(LocalNode node, OperationRecord& /*record*/,
                                                    bool keep) {
  node.control->cancel(keep);
  co_return node.offline != nullptr;
}

net::awaitable<Observation> StoppedServerOperation::observe(LocalNode node,
                                                            OperationRecord& record) {
  auto memory = memory_of(record);
  const auto gossip = client::to_result(co_await node.client.gossip());
  const auto self = gossip ? client::to_result(client::own_entry(*gossip, node.client.node()))
                           : Result<api::GossipMember>(gossip.error());
  if (!self || node.inspection() == nullptr) {
    if (node.offline == nullptr) {
      co_return not_known_yet(
          "the server does not answer, and the agent no longer knows how to start it "
          "(--service-unit, or --start-command and --stop-command)");
    }
    node.control->report({.phase = "starting the server"});
    auto seen =
        co_await await_server(node, memory, service_deadline(record).value_or(kServiceDeadline));
    record.memory_json = memory.dump();
    co_return seen;
  }
  const auto behind = not_caught_up(*gossip, *self, memory);
  record.memory_json = memory.dump();
  if (!behind.empty()) {
    node.control->report({.phase = "the server catches up"});
    co_return Observation{.kind = Observation::Kind::kRunning, .code = {}, .text = behind};
  }
  const auto looked_after = co_await look_after(node, record, memory);
  record.memory_json = memory.dump();
  if (!looked_after && looked_after.error().code == Errc::kUnavailable) {
    co_return Observation{
        .kind = Observation::Kind::kRunning, .code = {}, .text = looked_after.error().message};
  }
  if (!looked_after) {
    co_return Observation{.kind = Observation::Kind::kFailed,
                          .code = std::string(to_string(looked_after.error().code)),
                          .text = looked_after.error().message};
  }
  const auto looked = co_await fresh_look(node);
  if (!looked) {
    co_return not_known_yet(looked.error().message);
  }
  if (auto done = verify(**looked, record, memory)) {
    co_return *std::move(done);
  }
  co_return Observation{.kind = Observation::Kind::kFailed,
                        .code = memory.value("code", std::string("interrupted")),
                        .text = memory.value("error", std::string(left_in_the_middle()))};
}

}  // namespace verger::agent
