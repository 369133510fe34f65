#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/support/cluster/detail/sim_process.h"

namespace verger::testing {

namespace {

Error unavailable(const http::Endpoint& to, std::string_view why) {
  return Error{Errc::kUnavailable, fmt::format("{}: {}", to.url(), why)};
}

Error unknown(const http::Endpoint& to, std::string_view why) {
  return Error{Errc::kUnknownOutcome, fmt::format("{}: {}", to.url(), why)};
}

}  // namespace

/// One request under way. What waits for it is owned by the waiting coroutine alone.
struct SimTransport::Call {
  struct Waiting {
    Waiting(const net::any_io_executor& executor, SimHost& at) : host(at), signal(executor, 1) {}
    SimHost& host;
    SimSignal signal;
    std::optional<Result<http::Response>> answer;
    void give(Result<http::Response> result) {
      if (!answer) {
        answer = std::move(result);
        host.wake();
        signal.try_send(boost::system::error_code{});
      }
    }
  };
  http::Endpoint to;
  http::Request request;
  std::string from;
  std::uint64_t from_incarnation = 0;
  std::weak_ptr<Waiting> waiting;
};

/// Answers when it is done; when the process ends before, the asker's connection is reset, unless
/// the power went.
struct SimTransport::Answering {
  Answering(SimWorld& of, std::shared_ptr<Call> what, SimHost& at, bool wanted)
      : world(of), call(std::move(what)), host(at), incarnation(at.incarnation_), answer(wanted) {}
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;
  ~Answering() {
    if (!answered && answer && !host.silent_) {
      send_back(unknown(call->to, "the connection was reset before an answer came"));
    }
  }
  void send_back(Result<http::Response> result) {
    answered = true;
    if (!answer) {
      return;
    }
    const bool local = world.machine_of(call->from) == host.machine;
    if (!local && (world.random_.below(1000) < world.faults.lose_response || is_unlucky())) {
      ++world.counts.responses_lost;
      return;
    }
    world.schedule_for_hosts(
        local ? world.faults.min_delay : world.delay(),
        [&of = world, what = call, at = host.name(),
         answer = std::make_shared<Result<http::Response>>(std::move(result))] {
          const auto waiting = what->waiting.lock();
          auto* asker = alive(of, what->from, what->from_incarnation);
          if (!waiting || asker == nullptr) {
            return;
          }
          if (!of.connected(what->from, at)) {
            ++of.counts.partitioned;
            return;
          }
          if (*answer) {
            of.deliver({.kind = SimMessage::Kind::kResponse,
                        .from = at,
                        .to = what->from,
                        .port = what->to.port,
                        .method = what->request.method,
                        .target = what->request.target,
                        .status = (*answer)->status,
                        .size = (*answer)->body.size()});
          }
          waiting->give(std::move(*answer));
        });
  }

  [[nodiscard]] bool is_unlucky() const {
    return world.lose_answer && world.lose_answer({.kind = SimMessage::Kind::kResponse,
                                                   .from = host.name(),
                                                   .to = call->from,
                                                   .port = call->to.port,
                                                   .method = call->request.method,
                                                   .target = call->request.target});
  }

  SimWorld& world;
  std::shared_ptr<Call> call;
  SimHost& host;
  std::uint64_t incarnation;
  bool answer;
  bool answered = false;
};

SimHost* SimTransport::alive(SimWorld& world, const std::string& name, std::uint64_t incarnation) {
  auto* host = world.find(name);
  return host != nullptr && host->up() && !host->dying() && host->incarnation_ == incarnation
             ? host
             : nullptr;
}

net::awaitable<Result<http::Response>> SimTransport::send(http::Endpoint to, http::Request request,
                                                          std::chrono::milliseconds deadline) {
  const auto waiting = std::make_shared<Call::Waiting>(co_await net::this_coro::executor, host_);
  const auto call = std::make_shared<Call>(Call{.to = std::move(to),
                                                .request = std::move(request),
                                                .from = host_.name(),
                                                .from_incarnation = incarnation_,
                                                .waiting = waiting});
  if (!host_.dying()) {
    const bool local = world_.machine_of(call->to.host) == host_.machine;
    auto& faults = world_.faults;
    world_.schedule_for_hosts(deadline, [weak = std::weak_ptr(waiting), to = call->to] {
      if (const auto late = weak.lock()) {
        late->give(unknown(to, "no answer before the deadline"));
      }
    });
    if (!local && world_.random_.below(1000) < faults.lose_request) {
      ++world_.counts.requests_lost;
    } else {
      world_.schedule_for_hosts(local ? faults.min_delay : world_.delay(),
                                [&world = world_, call] { arrive(world, call, /*answer=*/true); });
      if (!local && world_.random_.below(1000) < faults.duplicate_request) {
        world_.schedule_for_hosts(world_.delay() + faults.longest_delay, [&world = world_, call] {
          arrive(world, call, /*answer=*/false);
        });
      }
    }
  }
  const auto [error] = co_await waiting->signal.async_receive(net::as_tuple(net::use_awaitable));
  if (error) {
    throw boost::system::system_error(net::error::operation_aborted);
  }
  co_return std::move(*waiting->answer);
}

void SimTransport::arrive(SimWorld& world, const std::shared_ptr<Call>& call, bool answer) {
  const auto refuse = [&](Error error) {
    if (const auto waiting = call->waiting.lock(); waiting && answer) {
      waiting->give(std::move(error));
    }
  };
  if (!world.connected(call->from, call->to.host)) {
    ++world.counts.partitioned;
    return;  // the deadline ends it
  }
  auto* host = world.find(call->to.host);
  if (host == nullptr || !host->up() || host->dying()) {
    refuse(unavailable(call->to, "connection refused"));
    return;
  }
  const auto handler = host->process_->http.find(call->to.port);
  if (handler == host->process_->http.end()) {
    refuse(unavailable(call->to, "nothing listens there"));
    return;
  }
  if (!answer) {
    ++world.counts.requests_duplicated;
  }
  world.deliver({.kind = SimMessage::Kind::kRequest,
                 .from = call->from,
                 .to = host->name(),
                 .port = call->to.port,
                 .method = call->request.method,
                 .target = call->request.target,
                 .size = call->request.body.size()});
  host->spawn(serve(handler->second, std::make_shared<Answering>(world, call, *host, answer)));
}

net::awaitable<void> SimTransport::serve(http::Handler handler,
                                         std::shared_ptr<Answering> answering) {
  auto request = answering->call->request;
  request.peer.address = answering->call->from;
  http::Response response;
  try {
    response = co_await handler(std::move(request));
  } catch (const boost::system::system_error&) {
    response.status = 500;
  }
  if (!answering->host.dying()) {
    answering->send_back(std::move(response));
  }
}

}  // namespace verger::testing
