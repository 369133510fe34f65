#include "nodeagent/operations/lost_streams_watch.h"

#include <optional>
#include <string>
#include <utility>

#include "engine/verify/lost_streams_job.h"

namespace verger::agent {
namespace {

constexpr std::chrono::minutes kBetweenLostLooks{1};
/// A server that has started writes its filter's checkpoint every 30 s.
constexpr std::chrono::minutes kAfterStart{3};
/// After each step: at most some 200,000 entries a second are looked at.
constexpr std::chrono::milliseconds kRest{20};

class GentleCount final : public Job {
 public:
  GentleCount(FileSystem& files, Path index_directory) : job_(files, std::move(index_directory)) {}
  Result<StepOutcome> step(Budget budget) override {
    VERGER_TRY(auto outcome, job_.step(budget));
    if (outcome.kind == StepOutcome::Kind::kMore) {
      outcome = {.kind = StepOutcome::Kind::kRest, .rest = kRest};
    }
    return outcome;
  }
  [[nodiscard]] std::int64_t count() const { return job_.count(); }

 private:
  verify::LostStreamsJob job_;
};

}  // namespace

struct LostStreamsWatch::State {
  std::function<node::NodeInspection*()> inspection{};
  std::shared_ptr<node::StopFlag> flag = std::make_shared<node::StopFlag>();
  std::int64_t count = -1;
  std::optional<std::string> seen{};  ///< instance of the server that runs
  Monotonic seen_at{};
  std::optional<std::string> counted{};  ///< instance of the server whose filter it was
  Monotonic counted_at{};
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

std::int64_t LostStreamsWatch::count() const { return state_->count; }

net::awaitable<void> LostStreamsWatch::watch(Environment environment,
                                             std::chrono::milliseconds period,
                                             std::shared_ptr<State> state) {
  while (!state->flag->requested()) {
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
    const bool is_due = state->counted != state->seen ? now - state->seen_at >= kAfterStart
                                                      : now - state->counted_at >= period;
    if (!is_due) {
      continue;
    }
    const auto instance = state->seen;
    const auto job = std::make_shared<GentleCount>(environment.files, node->index_directory());
    const auto counted = co_await environment.jobs.run(job, state->flag);
    state->counted = instance;
    state->counted_at = environment.clock.monotonic();
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
