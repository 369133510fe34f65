#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/client/judge.h"
#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/waiting_limit.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// A resignation to which no majority agrees has no effect, and no node reports it.
constexpr std::chrono::seconds kLeadershipLimit{10};

/// The node's own entry in its own gossip.
net::awaitable<Result<api::GossipMember>> own_entry(LocalNode node) {
  VERGER_CO_TRY(const auto gossip, client::to_result(co_await node.client.gossip()));
  if (const auto* self = client::answering_member(gossip, node.client.node())) {
    co_return *self;
  }
  co_return Error{Errc::kCorruption, "the node does not name itself in its gossip"};
}

/// The 200 of these routes says "queued" and no more; only observing shows what became of it.
Result<void> queued(const client::Outcome<client::Nothing>& answer) {
  if (answer.done() || (answer.unknown() && answer.code == "queued")) {
    return {};
  }
  return client::to_error(answer.verdict, answer.code, answer.why);
}

class ResignOperation final : public Operation {
 public:
  [[nodiscard]] std::string_view kind() const override { return "resign"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override { return {}; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY(const auto self, co_await own_entry(node));
    if (self.state != api::NodeState::kLeader) {
      co_return Error{Errc::kConflict, fmt::format("the node is {}, not Leader: nothing to resign",
                                                   api::to_string(self.state))};
    }
    record.memory_json = json{{"epoch", self.epoch_number}, {"instance", self.instance_id}}.dump();
    co_return Result<void>();
  }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& /*record*/) override {
    co_return queued(co_await node.client.resign());
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) override {
    const auto memory = memory_of(record);
    const auto self = co_await own_entry(node);
    if (!self) {
      co_return Observation{
          .kind = Observation::Kind::kUnknown, .code = {}, .text = self.error().message};
    }
    const auto epoch_before = memory.value("epoch", -1);
    const bool left =
        self->state != api::NodeState::kLeader && self->state != api::NodeState::kResigningLeader;
    if (left || self->epoch_number > epoch_before ||
        self->instance_id != memory.value("instance", self->instance_id)) {
      co_return Observation{.kind = Observation::Kind::kDone,
                            .code = {},
                            .text = json{{"state", api::to_string(self->state)},
                                         {"epochBefore", epoch_before},
                                         {"epoch", self->epoch_number}}
                                        .dump()};
    }
    if (waited_longer_than(kLeadershipLimit, node.clock.now(), record)) {
      co_return Observation{.kind = Observation::Kind::kFailed,
                            .code = "no_effect",
                            .text = "the node still leads in the same epoch: no majority agreed"};
    }
    co_return Observation{.kind = Observation::Kind::kRunning, .code = {}, .text = {}};
  }
};

class PriorityOperation final : public Operation {
 public:
  [[nodiscard]] std::string_view kind() const override { return "set_priority"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override { return {"priority"}; }

  net::awaitable<Result<void>> look(LocalNode /*node*/, OperationRecord& record) override {
    VERGER_CO_TRY([[maybe_unused]] const auto priority, parse_priority(record));
    co_return Result<void>();
  }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY(const auto priority, parse_priority(record));
    co_return queued(co_await node.client.set_priority(priority));
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) override {
    const auto wanted = parse_priority(record);
    const auto self = co_await own_entry(node);
    if (!wanted || !self) {
      co_return Observation{.kind = Observation::Kind::kUnknown,
                            .code = {},
                            .text = wanted ? self.error().message : wanted.error().message};
    }
    if (self->node_priority == *wanted) {
      co_return Observation{
          .kind = Observation::Kind::kDone, .code = {}, .text = json{{"priority", *wanted}}.dump()};
    }
    if (waited_longer_than(kLeadershipLimit, node.clock.now(), record)) {
      co_return Observation{
          .kind = Observation::Kind::kFailed,
          .code = "no_effect",
          .text = fmt::format("the node shows priority {}, not {}; a restart loses it, and a "
                              "read-only replica ignores it",
                              self->node_priority, *wanted)};
    }
    co_return Observation{.kind = Observation::Kind::kRunning, .code = {}, .text = {}};
  }

 private:
  static Result<std::int32_t> parse_priority(const OperationRecord& record) {
    const auto asked = json::parse(record.request.parameters_json, nullptr, false);
    if (!asked.is_object() || !asked.contains("priority") ||
        !asked.at("priority").is_number_integer()) {
      return Error{Errc::kInvalidArgument, "parameters of set_priority: \"priority\" is missing"};
    }
    return asked.at("priority").get<std::int32_t>();
  }
};

}  // namespace

std::unique_ptr<Operation> make_resign_operation() { return std::make_unique<ResignOperation>(); }
std::unique_ptr<Operation> make_priority_operation() {
  return std::make_unique<PriorityOperation>();
}

}  // namespace verger::agent
