#include <algorithm>
#include <fmt/format.h>
#include <set>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/detail/step_support.h"
#include "controller/executor/step_kinds.h"

namespace verger::controller {
namespace {

using detail::done;
using detail::not_needed;
using detail::parsed_or_empty;
using detail::ready;
using detail::running;
using detail::shared_point;
using detail::verdict;
using nlohmann::json;

struct Answer {
  std::string node;
  Result<std::optional<api::Digest>> digest = std::optional<api::Digest>();
};

net::awaitable<Answer> ask(std::shared_ptr<Peers> peers, std::string node, std::int64_t point) {
  Answer out;
  out.node = node;
  out.digest = co_await peers->digest(node, point);
  co_return out;
}

/// Only looks; there is nothing to act on, and nothing to undo.
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
    const auto point = parsed_or_empty(context.state.memo).value("point", -1LL);
    const auto names = nodes_of(context);
    std::vector<net::awaitable<Answer>> questions;
    questions.reserve(names.size());
    for (const auto& node : names) {
      questions.push_back(ask(context.peers, node, point));
    }
    const auto answers = co_await gather(std::move(questions));
    std::size_t ready_count = 0;
    for (const auto& answer : answers) {
      if (!answer.digest) {
        co_return verdict(Verdict::Kind::kUnknown,
                          fmt::format("{}: {}", answer.node, answer.digest.error().message));
      }
      ready_count += answer.digest->has_value() ? 1U : 0U;
    }
    if (ready_count < answers.size()) {
      co_return running({{"digestsReady", ready_count}, {"digests", answers.size()}});
    }
    co_return done(compare(context, point, answers));
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

  static json compare(const StepContext& context, std::int64_t point,
                      const std::vector<Answer>& answers) {
    std::set<std::string> logical;
    std::set<std::string> readable;
    std::set<std::int64_t> finished;
    auto nodes = json::object();
    for (const auto& answer : answers) {
      const auto& digest = **answer.digest;
      logical.insert(digest.logical);
      readable.insert(digest.readable);
      const auto* node = context.snapshot.find(answer.node);
      json last;
      if (node != nullptr && node->agent && node->agent->last_finished) {
        finished.insert(node->agent->last_finished->number);
        last = {{"number", node->agent->last_finished->number},
                {"position", node->agent->last_finished->position}};
      } else {
        finished.insert(-1);
      }
      nodes[answer.node] = {{"logical", digest.logical},
                            {"readable", digest.readable},
                            {"records", digest.records},
                            {"readableEvents", digest.readable_events},
                            {"lastFinished", std::move(last)}};
    }
    // Nodes with different histories may rightly differ in the first digest, not in the second.
    return {{"compared", true},
            {"point", point},
            {"equal", logical.size() == 1},
            {"readableEqual", readable.size() == 1},
            {"samePoint", finished.size() == 1},
            {"nodes", std::move(nodes)},
            {"firstDifference", first_difference(answers)}};
  }

  static json first_difference(const std::vector<Answer>& answers) {
    std::size_t chunks = 0;
    for (const auto& answer : answers) {
      chunks = std::max(chunks, (*answer.digest)->chunks.size());
    }
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      std::set<std::string> values;
      auto by_node = json::object();
      for (const auto& answer : answers) {
        const auto& list = (*answer.digest)->chunks;
        const auto value = chunk < list.size() ? list[chunk] : std::string();
        values.insert(value);
        by_node[answer.node] = value;
      }
      if (values.size() > 1) {
        return {{"chunk", chunk}, {"nodes", std::move(by_node)}};
      }
    }
    return nullptr;
  }
};

}  // namespace

std::unique_ptr<StepKind> make_compare_digests_step() {
  return std::make_unique<CompareDigestsStep>();
}

}  // namespace verger::controller
