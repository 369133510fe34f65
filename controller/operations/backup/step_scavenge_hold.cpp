// A scavenge beside a copy makes that unusable: it is stopped before the copy, and started again
// after it, however the run ends. It resumes where it was.
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/backup/repository_work.h"
#include "controller/operations/backup/step_kinds.h"
#include "engine/base/clock.h"

namespace verger::controller::backups {
namespace {

using nlohmann::json;
using steps::done;
using steps::not_needed;
using steps::ready;
using steps::running;
using steps::to_answer;
using steps::verdict;
using steps::wait;

/// A server answers to a stop once the scavenge has ended; one that is slow gets this long.
constexpr std::chrono::minutes kStopGrace{5};
/// Until a node shows a scavenge that it was requested to start.
constexpr std::chrono::seconds kStartGrace{30};

std::string held_name(std::string_view node) {
  return fmt::format("{}{}", names::kHeldValue, node);
}

class HoldStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kHold; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt) const override { return false; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr || !node->scavenge_running) {
      co_return wait("whether a scavenge runs there cannot be seen");
    }
    if (!*node->scavenge_running) {
      co_return not_needed({{"not_needed", "no scavenge runs there"}});
    }
    if (node->running.scavenge_id.empty()) {
      co_return wait("a scavenge runs there, and its id is not known");
    }
    auto out = ready({{"scavenge_id", node->running.scavenge_id}});
    // Before it is stopped: after a crash, the controller that continues the run starts it again.
    out.values[held_name(context.step.node)] = json{
        {"scavenge_id", node->running.scavenge_id},
        {"held_at", format_ticks(context.now)}}.dump();
    co_return out;
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const auto peers = context.peers;
    const auto node = context.step.node;
    const auto id = held_id(context);
    auto stopped = co_await peers->stop_scavenge(node, id);
    if (!stopped && stopped.error().code == Errc::kNotFound) {
      stopped = Result<void>{};  // it has ended by itself
    }
    co_return to_answer(stopped);
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto* node = context.node();
    const auto id = held_id(context);
    if (node == nullptr || !node->scavenge_running) {
      co_return verdict(Verdict::Kind::kUnknown, "whether a scavenge runs there cannot be seen");
    }
    if (!*node->scavenge_running) {
      co_return done({{"scavenge_id", id}});
    }
    if (node->running.scavenge_id != id) {
      co_return verdict(Verdict::Kind::kNotHappened, "other-scavenge",
                        fmt::format("scavenge {} runs there now", node->running.scavenge_id));
    }
    co_return context.in_state < kStopGrace
        ? running({{"phase", fmt::format("scavenge {} is being stopped", id)}})
        : verdict(Verdict::Kind::kNotHappened, fmt::format("scavenge {} still runs", id));
  }

 private:
  static std::string held_id(const StepContext& context) {
    return context.state.memo->value("scavenge_id", std::string());
  }
};

class ReleaseStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kRelease; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }
  [[nodiscard]] bool closes_run() const override { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt) const override { return false; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto name = of(context);
    const auto held = context.values.find(held_name(name));
    if (held == context.values.end()) {
      co_return not_needed({{"not_needed", "this run stopped no scavenge there"}});
    }
    const auto* node = context.snapshot.find(name);
    if (node == nullptr) {
      co_return not_needed({{"not_needed", "the node is no longer registered"}});
    }
    if (!node->scavenge_running) {
      co_return wait(fmt::format(
          "the scavenge of {} was stopped for this backup and cannot be started again: {}; by "
          "hand: {}",
          name, node->problem.empty() ? "whether one runs cannot be seen" : node->problem,
          steps::post_command(node->url, "/admin/scavenge?syncOnly=true")));
    }
    if (*node->scavenge_running) {
      co_return not_needed(
          {{"not_needed", "one runs there"}, {"scavenge_id", node->running.scavenge_id}});
    }
    if (node->agent && !node->agent->unfinished) {
      co_return not_needed({{"not_needed", "it had reached its point"}});
    }
    co_return ready();
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const auto peers = context.peers;
    // Without a new point: it resumes the one that was stopped, to the point and with the threshold
    // that it had.
    const auto threads =
        static_cast<std::int32_t>(steps::int_parameter(context.step, "threads", 1));
    auto started =
        co_await peers->start_scavenge(of(context), {.threads = threads, .sync_only = true});
    auto out = to_answer(started);
    if (started) {
      out.memo = json{{"scavenge_id", *started}};
    }
    co_return out;
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto* node = context.snapshot.find(of(context));
    if (node == nullptr || !node->scavenge_running) {
      co_return verdict(Verdict::Kind::kUnknown, "whether the scavenge runs cannot be seen");
    }
    const auto id = context.state.memo->value("scavenge_id", std::string());
    if (*node->scavenge_running) {
      co_return done({{"scavenge_id", node->running.scavenge_id}});
    }
    if (!id.empty() || (node->agent && !node->agent->unfinished)) {
      co_return done({{"scavenge_id", id}, {"ended", true}});
    }
    co_return context.in_state < kStartGrace
        ? running({{"phase", "the scavenge starts"}})
        : verdict(Verdict::Kind::kNotHappened, "no scavenge was started");
  }

 private:
  static std::string of(const StepContext& context) {
    return steps::text_parameter(context.step, "of");
  }
};

}  // namespace

std::unique_ptr<StepKind> make_hold_step() { return std::make_unique<HoldStep>(); }
std::unique_ptr<StepKind> make_release_step() { return std::make_unique<ReleaseStep>(); }

}  // namespace verger::controller::backups
