#include "nodeagent/http/task_group.h"

#include <list>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/system/system_error.hpp>

#include "nodeagent/http/task_count.h"

namespace verger::http {

struct TaskGroup::State {
  net::any_io_executor executor;
  Log& log;
  std::string name;
  bool closed = false;
  std::list<net::cancellation_signal> running;
  TaskCount count;

  State(net::any_io_executor on, Log& to, std::string group_name)
      : executor(std::move(on)), log(to), name(std::move(group_name)), count(executor) {}

  void cancel_all() {
    closed = true;
    // A coroutine may end inside emit(), but its entry goes only when its completion handler runs.
    for (auto& signal : running) {
      signal.emit(net::cancellation_type::terminal);
    }
  }

  void report(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const boost::system::system_error& error) {
      if (error.code() != net::error::operation_aborted) {
        log.error("a task ended with an error", {{"group", name}, {"error", error.what()}});
      }
    } catch (const std::exception& error) {
      log.error("a task ended with an exception", {{"group", name}, {"error", error.what()}});
    } catch (...) {
      log.error("a task ended with an exception", {{"group", name}});
    }
  }
};

TaskGroup::TaskGroup(net::any_io_executor executor, Log& log, std::string name)
    : state_(std::make_shared<State>(std::move(executor), log, std::move(name))) {}

TaskGroup::~TaskGroup() { state_->cancel_all(); }

void TaskGroup::spawn(net::awaitable<void> work) {
  if (state_->closed) {
    return;
  }
  state_->running.emplace_back();
  state_->count.begin();
  const auto entry = std::prev(state_->running.end());
  net::co_spawn(state_->executor, std::move(work),
                net::bind_cancellation_slot(entry->slot(), [state = state_, entry](auto failure) {
                  if (failure) {
                    state->report(failure);
                  }
                  state->running.erase(entry);
                  state->count.end();
                }));
}

std::size_t TaskGroup::size() const { return state_->count.size(); }

void TaskGroup::cancel() { state_->cancel_all(); }

net::awaitable<void> TaskGroup::stop(std::chrono::milliseconds grace) {
  const auto state = state_;
  state->closed = true;
  co_await state->count.wait_for_all(std::chrono::steady_clock::now() + grace);
  state->cancel_all();
  co_await state->count.wait_for_all();
}

}  // namespace verger::http
