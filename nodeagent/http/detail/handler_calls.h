#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "engine/base/log.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/server.h"
#include "nodeagent/http/task_group.h"

namespace verger::http {

/// Calls a server's handler, whatever protocol the request came by. A handler's exception is logged
/// and answered with 500; an answer that takes longer than ServerLimits::handler is replaced by
/// ServerOptions::handler_late, while the handler continues to its end in the server's group.
class HandlerCalls {
 public:
  HandlerCalls(net::any_io_executor executor, const ServerOptions& options, Handler handler,
               std::shared_ptr<TaskGroup> tasks, Log& log);

  static net::awaitable<Response> answer(std::shared_ptr<HandlerCalls> self, Request request);
  /// From now on a handler that is cancelled is no failure.
  void server_stops() { stopping_ = true; }

 private:
  struct LateAnswer;
  static net::awaitable<Response> call(std::shared_ptr<HandlerCalls> self, Request request);
  static net::awaitable<void> call_late(std::shared_ptr<HandlerCalls> self,
                                        std::shared_ptr<LateAnswer> answer, Request request);

  net::any_io_executor executor_;
  Handler handler_;
  std::chrono::milliseconds limit_;
  std::chrono::milliseconds (*more_time_)(const Request&);
  Response late_;
  std::shared_ptr<TaskGroup> tasks_;
  Log& log_;
  bool stopping_ = false;
};

}  // namespace verger::http
