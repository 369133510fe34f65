#include "nodeagent/http/detail/handler_calls.h"

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/system_error.hpp>

#include "nodeagent/http/detail/transport.h"

namespace verger::http {

/// Where a handler leaves its answer when it may be late.
struct HandlerCalls::LateAnswer {
  std::optional<Response> response;
  net::steady_timer done;
  LateAnswer(const net::any_io_executor& executor, std::chrono::milliseconds limit)
      : done(executor, limit) {}
};

HandlerCalls::HandlerCalls(net::any_io_executor executor, const ServerOptions& options,
                           Handler handler, std::shared_ptr<TaskGroup> tasks, Log& log)
    : executor_(std::move(executor)),
      handler_(std::move(handler)),
      limit_(options.limits.handler),
      more_time_(options.more_time),
      late_(options.handler_late),
      tasks_(std::move(tasks)),
      log_(log) {}

net::awaitable<Response> HandlerCalls::answer(std::shared_ptr<HandlerCalls> self, Request request) {
  if (self->limit_.count() == 0) {
    co_return co_await call(self, std::move(request));
  }
  const auto limit = self->limit_ + (self->more_time_ == nullptr ? std::chrono::milliseconds(0)
                                                                 : self->more_time_(request));
  const auto answer = std::make_shared<LateAnswer>(self->executor_, limit);
  self->tasks_->spawn(call_late(self, answer, std::move(request)));
  if (!answer->response.has_value()) {
    co_await answer->done.async_wait(kTuple);
  }
  if (answer->response.has_value()) {
    co_return std::move(*answer->response);
  }
  co_return self->late_;
}

net::awaitable<void> HandlerCalls::call_late(std::shared_ptr<HandlerCalls> self,
                                             std::shared_ptr<LateAnswer> answer, Request request) {
  answer->response = co_await call(self, std::move(request));
  answer->done.cancel();
}

net::awaitable<Response> HandlerCalls::call(std::shared_ptr<HandlerCalls> self, Request request) {
  std::string what = request.method + " " + request.target;
  std::string failed;
  try {
    co_return co_await self->handler_(std::move(request));
  } catch (const boost::system::system_error& error) {
    if (error.code() == net::error::operation_aborted && self->stopping_) {
      throw;
    }
    failed = error.what();
  } catch (const std::exception& error) {
    failed = error.what();
  }
  what = what.substr(0, what.find('?'));
  self->log_.error("a request's handler failed", {{"request", what}, {"error", failed}});
  co_return Response{.status = 500};
}

}  // namespace verger::http
