#include <algorithm>
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

/// Only looks; there is nothing to undo. Where the nodes' records are the same, what earlier steps
/// left is all that is needed. Else the readable digest is requested of each agent, one by one.
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
    co_return ActAnswer{ActAnswer::Kind::kAccepted, "", "{}"};
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto memo = parsed_or_empty(context.state.memo);
    const auto point = memo.value("point", -1LL);
    if (const auto known = known_and_same(context, point)) {
      co_return compared(context, point, *known);
    }
    // Agents keep what they have finished; so the earlier ones are queried again only at the end.
    auto have = memo.value("ready", std::set<std::string>());
    std::map<std::string, api::Digest> digests;
    const auto names = nodes_of(context);
    for (const bool last_round : {false, true}) {
      for (const auto& node : names) {
        if (digests.contains(node) || (!last_round && have.contains(node))) {
          continue;
        }
        auto look = co_await look_at_digest(context, node, point, /*readable=*/true);
        if (!look.digest) {
          const bool was_ready = have.erase(node) > 0;
          if (was_ready || have != memo.value("ready", std::set<std::string>())) {
            look.verdict.memo = json{{"ready", have}}.dump();
          }
          co_return std::move(look.verdict);
        }
        have.insert(node);
        digests[node] = *std::move(look.digest);
      }
    }
    co_return compared(context, point, digests);
  }

  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt) const override { return true; }
  net::awaitable<void> interrupt(StepContext context) override {
    const auto point = parsed_or_empty(context.state.memo).value("point", -1LL);
    for (const auto& node : nodes_of(context)) {
      co_await stop_digest(context, node, point);
    }
  }

 private:
  static std::vector<std::string> nodes_of(const StepContext& context) {
    std::vector<std::string> out;
    const auto found = context.step.parameters.find("nodes");
    if (found != context.step.parameters.end() && found->second.as_array() != nullptr) {
      for (const auto& node : *found->second.as_array()) {
        if (node.as_string() != nullptr && !context.skipped_nodes.contains(*node.as_string())) {
          out.push_back(*node.as_string());
        }
      }
    }
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
