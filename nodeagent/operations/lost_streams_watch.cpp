#include "nodeagent/operations/lost_streams_watch.h"

#include <optional>
#include <string>
#include <utility>

#include "engine/verify/lost_streams_job.h"

namespace verger::agent {
namespace {

/// A restart of the server is seen by the next look; a look reads what the agent has in memory.
constexpr std::chrono::minutes kBetweenLostLooks{1};
/// A server that has started writes its filter's checkpoint every 30 s: several of them, so that a
/// filter which it still makes is not taken for one that lacks streams.
constexpr std::chrono::minutes kAfterStart{3};
/// After a look that found nothing out, most often since tables were merged meanwhile: that ends
/// within minutes, and the count is no hurry.
constexpr std::chrono::minutes kAfterFailure{10};
/// 200,000 entries, 4.8 MB, a second: a tenth of what a slow disk reads. A billion entries take an
/// hour and a half.
constexpr std::uint32_t kEntriesPerMs = 200;
/// What the filter has by then was on its way to it: a server writes it every 30 s.
constexpr std::chrono::minutes kUntilConfirmed{1};

/// Counts, and where some are lost looks once more a minute later.
class GentleCount final : public Job {
 public:
  GentleCount(FileSystem& files, Path index_directory) : job_(files, std::move(index_directory)) {}
  Result<StepOutcome> step(Budget budget) override {
    if (is_counted_) {
      VERGER_RETURN_IF_ERROR(job_.look_again());
      return StepOutcome{.kind = StepOutcome::Kind::kDone};
    }
    VERGER_TRY(const auto outcome, job_.step(budget));
    if (outcome.kind != StepOutcome::Kind::kDone) {
      return StepOutcome{.kind = StepOutcome::Kind::kRest,
                         .rest = std::chrono::milliseconds(budget.units / kEntriesPerMs)};
    }
    is_counted_ = true;
    return job_.count() == 0
               ? outcome
               : StepOutcome{.kind = StepOutcome::Kind::kRest, .rest = kUntilConfirmed};
  }
  [[nodiscard]] std::int64_t count() const { return job_.count(); }

 private:
  verify::LostStreamsJob job_;
  bool is_counted_ = false;
};

}  // namespace

struct LostStreamsWatch::State {
  std::function<node::NodeInspection*()> inspection{};
  std::shared_ptr<node::StopFlag> flag = std::make_shared<node::StopFlag>();
  std::int64_t count = -1;
  std::optional<std::string> seen{};  ///< instance of the server that runs
  Monotonic seen_at{};
  std::optional<std::string> counted{};  ///< instance of the server whose filter it was
  Monotonic due{};                       ///< the next look at that one
};

LostStreamsWatch::LostStreamsWatch(Environment environment)
    : environment_(environment), state_(std::make_shared<State>()) {}

void LostStreamsWatch::start(http::TaskGroup& tasks, std::chrono::milliseconds period,
                             std::function<node::NodeInspection*()> inspection) {
  if (period.count() > 0) {
    state_->inspection = std::move(inspection);
    tasks.spawn(watch(environment_, period, state_));
  }
}

void LostStreamsWatch::stop() { state_->flag->request(); }

void LostStreamsWatch::forget() {
  state_->count = -1;
  state_->counted.reset();
  state_->seen.reset();
}

std::int64_t LostStreamsWatch::count() const { return state_->count; }

net::awaitable<void> LostStreamsWatch::watch(Environment environment,
                                             std::chrono::milliseconds period,
                                             std::shared_ptr<State> state) {
  while (!state->flag->requested()) {  // until stop(), at the end of the agent
    co_await environment.timers.sleep_for(kBetweenLostLooks);
    auto* node = state->flag->requested() ? nullptr : state->inspection();
    if (node == nullptr) {
      continue;
    }
    const auto now = environment.clock.monotonic();
    if (auto instance = node->instance_id(); instance != state->seen) {
      state->seen = std::move(instance);
      state->seen_at = now;
    }
    const bool is_due =
        state->counted != state->seen ? now - state->seen_at >= kAfterStart : now >= state->due;
    if (!is_due) {
      continue;
    }
    const auto instance = state->seen;
    const auto job = std::make_shared<GentleCount>(environment.files, node->index_directory());
    const auto counted = co_await environment.jobs.run(job, state->flag);
    if (state->flag->requested()) {
      co_return;
    }
    node = state->inspection();
    if (node == nullptr || state->seen != instance || node->instance_id() != instance) {
      continue;  // what was read were the files of two servers
    }
    state->counted = instance;
    state->due = environment.clock.monotonic() + (counted ? period : kAfterFailure);
    if (!counted) {
      environment.log.info("lost streams are not counted", {{"error", counted.error().message}});
      continue;
    }
    state->count = job->count();
    if (state->count > 0) {
      environment.log.warning(
          "streams are not in the existence filter: the server does not find them after its next "
          "start",
          {{"streams", std::to_string(state->count)}});
    }
  }
}

}  // namespace verger::agent
