#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"
#include "controller/operations/growth/step_kinds.h"
#include "controller/operations/resize/resize_support.h"
#include "controller/operations/resize/step_around.h"
#include "controller/operations/resize/step_kinds.h"
#include "controller/operations/restore/step_kinds.h"

namespace verger::controller::resize {
namespace {

using steps::verdict;

/// All members count to the larger size by now: where one of them is down, the new voters are what
/// makes a quorum, and stay until it is back. A new one that counts to the smaller size, such as by
/// a flag of its service, is stopped again at once.
class VoterStartStep final : public StepAround {
 public:
  VoterStartStep() : StepAround(growth::make_join_start_step()) {}
  [[nodiscard]] std::string_view name() const override { return names::kStart; }
  [[nodiscard]] bool can_undo() const override { return true; }

  net::awaitable<Verdict> observe(StepContext context) override {
    auto seen = co_await inner().observe(context);
    const auto wanted = steps::int_parameter(context.step, "size", 0);
    if (seen.kind != Verdict::Kind::kDone || wanted == 0) {
      co_return seen;
    }
    const auto peers = context.peers;
    const auto config = co_await peers->server_config(context.step.node);
    if (!config || config->reported == 0) {
      co_return steps::running(
          {{"phase", config ? std::string("its server does not report its cluster size yet")
                            : config.error().message}});
    }
    if (config->reported != wanted) {
      co_return verdict(
          Verdict::Kind::kFailed, "another-size",
          fmt::format("{} runs with cluster size {}, and {} is in its file: a flag of its service, "
                      "a variable or another file counts more; correct that",
                      context.step.node, config->reported, wanted));
    }
    co_return seen;
  }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    for (const auto& name : steps::list_parameter(context.step, "nodes")) {
      const auto* node = context.snapshot.find(name);
      if (node == nullptr || !node->answered || !node->alive) {
        co_return ActAnswer{ActAnswer::Kind::kRefused,
                            fmt::format("{} does not answer: without it and {} there would be no "
                                        "quorum",
                                        name, context.step.node)};
      }
    }
    co_return co_await inner().undo(std::move(context));
  }

  /// Its files go, and the members become fewer than those that confirmed writes with it: all of
  /// them have everything first.
  net::awaitable<Verdict> observe_undo(StepContext context) override {
    auto seen = co_await inner().observe_undo(context);
    if (seen.kind == Verdict::Kind::kDone) {
      if (auto why = not_settled(context); !why.empty()) {
        co_return verdict(Verdict::Kind::kRunning, std::move(why));
      }
    }
    co_return seen;
  }
};

/// A new voter that has caught up may be elected while the other one still catches up: here the new
/// ones count.
class VoterFollowsStep final : public StepAround {
 public:
  VoterFollowsStep() : StepAround(cluster_restore::make_check_step()) {}
  [[nodiscard]] std::string_view name() const override { return names::kFollow; }

  net::awaitable<Verdict> observe(StepContext context) override {
    auto& seen = context.snapshot;
    seen.nodes.insert(seen.nodes.end(), seen.joining.begin(), seen.joining.end());
    seen.joining.clear();
    co_return co_await inner().observe(std::move(context));
  }
};

}  // namespace

std::unique_ptr<StepKind> make_voter_start_step() { return std::make_unique<VoterStartStep>(); }
std::unique_ptr<StepKind> make_voter_follows_step() { return std::make_unique<VoterFollowsStep>(); }

}  // namespace verger::controller::resize
