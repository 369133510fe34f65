#include "nodeagent/http/task_count.h"

#include <list>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace verger::http {

struct TaskCount::State {
  net::any_io_executor executor;
  std::size_t count = 0;
  /// Of those who wait; cancelled when a coroutine ends.
  std::list<net::steady_timer*> waiting{};
};

TaskCount::TaskCount(const net::any_io_executor& executor)
    : state_(std::make_shared<State>(State{.executor = executor})) {}

void TaskCount::begin() { ++state_->count; }

void TaskCount::end() {
  --state_->count;
  for (auto* timer : state_->waiting) {
    timer->cancel();
  }
}

std::size_t TaskCount::size() const { return state_->count; }

net::awaitable<void> TaskCount::wait_for_all(Limit limit) { return wait(state_, limit); }

net::awaitable<void> TaskCount::wait(std::shared_ptr<State> state, Limit limit) {
  net::steady_timer timer(state->executor, limit);
  struct Entry {
    std::list<net::steady_timer*>& list;
    std::list<net::steady_timer*>::iterator at;
    ~Entry() { list.erase(at); }
  } entry{state->waiting, state->waiting.insert(state->waiting.end(), &timer)};
  while (state->count > 0 && net::steady_timer::clock_type::now() < limit) {
    co_await timer.async_wait(net::as_tuple(net::use_awaitable));
  }
}

}  // namespace verger::http
