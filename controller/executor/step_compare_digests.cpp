#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/detail/digest_comparison.h"
#include "controller/executor/detail/step_support.h"
#include "controller/executor/step_kinds.h"

namespace verger::controller {
namespace {

using detail::ComparedNode;
using detail::comparison_of;
using detail::DigestBefore;
using detail::done;
using detail::kDigestBefore;
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
    std::vector<ComparedNode> nodes;
    nodes.reserve(answers.size());
    for (const auto& answer : answers) {
      ComparedNode each{.name = answer.node, .digest = **answer.digest, .last_finished = {}};
      if (const auto* node = context.snapshot.find(answer.node); node != nullptr && node->agent) {
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
    return comparison_of(point, nodes, before);
  }
};

}  // namespace

std::unique_ptr<StepKind> make_compare_digests_step() {
  return std::make_unique<CompareDigestsStep>();
}

}  // namespace verger::controller
