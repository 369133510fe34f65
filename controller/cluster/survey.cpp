#include "controller/cluster/survey.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include "nodeagent/http/task_count.h"

namespace verger::controller {
namespace {

/// A host that drops packets must not hold up the others, nor the end.
constexpr std::chrono::milliseconds kSurveyLimit{3'000};
constexpr std::size_t kAtOnce = 32;
/// Between two clusters of the first round, in which every connection is made.
constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kShortestPause{5};

}  // namespace

struct Survey::State {
  explicit State(SurveyParts with) : parts(std::move(with)), running(parts.executor) {}

  static net::awaitable<void> go_round(std::shared_ptr<State> self);
  static net::awaitable<void> look(std::shared_ptr<State> self, ClusterConfig config);
  void spawn_look(const std::shared_ptr<State>& self, ClusterConfig config);

  SurveyParts parts;
  http::TaskCount running;
  net::cancellation_signal stop_going;
  std::set<std::string> looked_at;  ///< now
};

net::awaitable<void> Survey::State::look(std::shared_ptr<State> self, ClusterConfig config) {
  const auto snapshot =
      co_await self->parts.observer.take(std::move(config), Depth::kSurvey, kSurveyLimit);
  if (self->parts.seen) {
    self->parts.seen(snapshot);
  }
}

void Survey::State::spawn_look(const std::shared_ptr<State>& self, ClusterConfig config) {
  const auto name = config.name;
  looked_at.insert(name);
  running.begin();
  net::co_spawn(parts.executor, look(self, std::move(config)),
                [self, name](const std::exception_ptr& failure) {
                  if (failure) {
                    self->parts.log.warning("a cluster could not be looked at",
                                            {{"cluster", name}});
                  }
                  self->looked_at.erase(name);
                  self->running.end();
                });
}

net::awaitable<void> Survey::State::go_round(std::shared_ptr<State> self) {
  const auto& parts = self->parts;
  for (bool first = true;; first = false) {
    std::set<std::string> names;
    for (const auto& config : parts.registry.list()) {
      names.insert(config.name);
    }
    parts.observer.keep_last_seen_of(names);
    const auto count = static_cast<std::int64_t>(std::max<std::size_t>(names.size(), 1));
    const auto even = std::max(parts.every / count, kShortestPause);
    const auto pause = first ? std::min(even, kFirstPause) : even;
    for (const auto& name : names) {
      // It may be another one by now, or gone.
      if (auto config = parts.registry.find(name); config && !self->looked_at.contains(name)) {
        self->spawn_look(self, *std::move(config));
      }
      do {
        co_await parts.timers.sleep_for(pause);
      } while (self->looked_at.size() >= kAtOnce);
    }
    if (const auto rest = parts.every - pause * static_cast<std::int64_t>(names.size());
        rest > kShortestPause) {
      co_await parts.timers.sleep_for(rest);
    }
  }
}

Survey::Survey(SurveyParts parts) : state_(std::make_shared<State>(std::move(parts))) {}
Survey::~Survey() = default;

void Survey::start() {
  state_->running.begin();
  net::co_spawn(state_->parts.executor, State::go_round(state_),
                net::bind_cancellation_slot(
                    state_->stop_going.slot(),
                    [state = state_](const std::exception_ptr&) { state->running.end(); }));
}

net::awaitable<void> Survey::stop() {
  const auto state = state_;
  state->stop_going.emit(net::cancellation_type::terminal);
  co_await state->running.wait_for_all();
}

}  // namespace verger::controller
