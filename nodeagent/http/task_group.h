#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "engine/base/log.h"
#include "nodeagent/http/message.h"

namespace verger::http {

/// The coroutines an object has started, so that none is forgotten: exceptions are logged, and the
/// group ends in order.
///
/// Everything runs on `executor`, which must be a strand or belong to a single thread; the members
/// are called there too. Copies of the state live in the coroutines, so the group may be destroyed
/// before them; the destructor then cancels them.
class TaskGroup {
 public:
  TaskGroup(net::any_io_executor executor, Log& log, std::string name);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Starts `work`. Once cancel() or stop() was called, new work is dropped unstarted.
  void spawn(net::awaitable<void> work);
  [[nodiscard]] std::size_t size() const;
  /// Cancels every coroutine (terminal cancellation), and takes no more.
  void cancel();
  /// Takes no more, waits `grace` for all to end, cancels the rest, waits for them without limit.
  net::awaitable<void> stop(std::chrono::milliseconds grace);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace verger::http
