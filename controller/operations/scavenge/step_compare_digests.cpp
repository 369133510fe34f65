#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <map>
#include <set>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/scavenge/digest_comparison.h"
#include "controller/operations/scavenge/digest_work.h"
#include "controller/operations/scavenge/scavenge_support.h"
#include "controller/operations/scavenge/step_kinds.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using steps::done;
using steps::not_needed;
using steps::parsed_or_empty;
using steps::ready;

/// Only reads; there is nothing to undo. Where the nodes' records are the same, what earlier steps
/// left is all that is needed. Else the readable digest is computed by each agent, one after the
/// other: an operation for each node, of the step's own and the node's name, begun when it is its
/// turn.
class CompareDigestsStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "compare_digests"; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto point = shared_point(context);
    if (point < 0) {
      co_return not_needed(
          {{"compared", false}, {"reason", "the number of the shared point was not seen"}});
    }
    if (nodes_of(context).size() < 2) {
      co_return not_needed({{"compared", false}, {"reason", "fewer than two nodes are left"}});
    }
    co_return ready({{"point", point}});
  }

  net::awaitable<ActAnswer> act(StepContext) override {
    co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const json memo = *context.state.memo;
    const auto point = memo.value("point", -1LL);
    if (const auto known = known_and_same(context, point)) {
      co_return compared(context, point, *known);
    }
    if (context.state.interrupting) {
      co_return co_await stopped(context);
    }
    std::map<std::string, api::Digest> digests;
    for (const auto& node : nodes_of(context)) {
      auto look = co_await look_at_digest(context, node, operation_of(context, node));
      if (look.verdict.kind == Verdict::Kind::kNotArrived && !look.digest) {
        co_return co_await begin_digest(context, node, point);
      }
      if (!look.digest) {
        co_return std::move(look.verdict);
      }
      digests[node] = *std::move(look.digest);
    }
    co_return compared(context, point, digests);
  }

  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt) const override { return true; }
  net::awaitable<void> interrupt(StepContext context) override {
    for (const auto& node : nodes_of(context)) {
      co_await stop_digest(context, node, operation_of(context, node));
    }
  }

 private:
  static std::string operation_of(const StepContext& context, const std::string& node) {
    return fmt::format("{}.{}", context.state.operation, node);
  }

  static net::awaitable<Result<void>> permit(StepContext context, std::string node,
                                             std::chrono::milliseconds valid_for) {
    const auto peers = context.peers;
    api::Permit permit;
    permit.controller_epoch = context.epoch.value();
    permit.run = context.run;
    permit.step = context.attempt_name();
    permit.valid_for_ms = valid_for.count();
    co_return co_await peers->permit(std::move(node), std::move(permit));
  }

  /// The permits of the step's own beginning may have run out: a node's turn comes when the digest
  /// of the one before it is done.
  static net::awaitable<Verdict> begin_digest(StepContext context, std::string node,
                                              std::int64_t point) {
    constexpr std::chrono::seconds kValidFor{60};
    const auto peers = context.peers;
    auto begun = co_await permit(context, node, kValidFor);
    if (begun) {
      api::OperationRequest request;
      request.id = operation_of(context, node);
      request.run = context.run;
      request.step = context.attempt_name();
      request.controller_epoch = context.epoch.value();
      request.kind = "digest";
      request.parameters_json = digest_parameters(context, point, /*readable=*/true).dump();
      if (const auto* seen = context.snapshot.find(node)) {
        request.expected_instance_id = seen->instance_id;
      }
      const auto answer = co_await peers->start_operation(node, std::move(request));
      begun = answer ? Result<void>() : Result<void>(answer.error());
    }
    co_return begun ? steps::running({{"phase", fmt::format("digest of {}", node)}})
                    : steps::verdict(Verdict::Kind::kUnknown,
                                     fmt::format("{}: {}", node, begun.error().message));
  }

  /// Once no node works on its digest, and none begins to: what is still under way is shut out.
  static net::awaitable<Verdict> stopped(StepContext context) {
    for (const auto& node : nodes_of(context)) {
      const auto revoked = co_await permit(context, node, std::chrono::milliseconds(0));
      if (!revoked) {
        co_return steps::verdict(Verdict::Kind::kUnknown,
                                 fmt::format("{}: {}", node, revoked.error().message));
      }
      auto look = co_await look_at_digest(context, node, operation_of(context, node));
      if (!look.digest && (look.verdict.kind == Verdict::Kind::kRunning ||
                           look.verdict.kind == Verdict::Kind::kUnknown)) {
        co_return std::move(look.verdict);
      }
    }
    co_return steps::verdict(Verdict::Kind::kStopped, "stopped-by-us", "stopped on request");
  }

  static std::vector<std::string> nodes_of(const StepContext& context) {
    auto out = steps::list_parameter(context.step, "nodes");
    std::erase_if(out, [&](const auto& node) { return context.skipped_nodes.contains(node); });
    return out;
  }

  /// What earlier steps left, where it is of all nodes and their records are the same.
  static std::optional<std::map<std::string, api::Digest>> known_and_same(
      const StepContext& context, std::int64_t point) {
    std::map<std::string, api::Digest> out;
    for (const auto& node : nodes_of(context)) {
      const auto value = context.values.find(digest_value_name(node));
      auto digest =
          value == context.values.end() ? std::nullopt : digest_of_value(value->second, point);
      if (!digest || (!out.empty() && out.begin()->second.logical != digest->logical)) {
        return std::nullopt;
      }
      out[node] = *std::move(digest);
    }
    return out;
  }

  /// A node that does not answer has not finished nothing: its point is not known.
  static Verdict compared(const StepContext& context, std::int64_t point,
                          const std::map<std::string, api::Digest>& digests) {
    for (const auto& name : nodes_of(context)) {
      const auto* node = context.snapshot.find(name);
      if (node == nullptr || !node->answered || !node->agent) {
        return steps::verdict(
            Verdict::Kind::kUnknown,
            fmt::format("which scavenge point {} has finished is not known: {}", name,
                        node == nullptr || node->answered ? "its agent does not answer"
                                                          : "it does not answer"));
      }
    }
    return done(compare(context, point, digests));
  }

  static json compare(const StepContext& context, std::int64_t point,
                      const std::map<std::string, api::Digest>& digests) {
    std::vector<ComparedNode> nodes;
    for (const auto& name : nodes_of(context)) {
      ComparedNode each{.name = name, .digest = digests.at(name), .last_finished = {}};
      if (const auto* node = context.snapshot.find(name); node != nullptr && node->agent) {
        each.last_finished = node->agent->last_finished;
      }
      nodes.push_back(std::move(each));
    }
    DigestBefore before;
    if (const auto found = context.values.find(kDigestBefore); found != context.values.end()) {
      const auto value = parsed_or_empty(found->second);
      before = {.node = value.value("node", std::string()),
                .readable = value.value("readable", std::string())};
    }
    return comparison_of(point, std::move(nodes), before);
  }
};

}  // namespace

std::unique_ptr<StepKind> make_compare_digests_step() {
  return std::make_unique<CompareDigestsStep>();
}

}  // namespace verger::controller::scavenge
