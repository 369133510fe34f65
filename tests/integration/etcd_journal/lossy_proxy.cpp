#include "tests/integration/etcd_journal/lossy_proxy.h"

#include <stdexcept>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

namespace verger::test {
namespace {

constexpr std::chrono::seconds kLong{10};

}  // namespace

LossyProxy::LossyProxy(http::Endpoint etcd) : etcd_(std::move(etcd)) {
  server_ = std::make_unique<http::Server>(
      context_.get_executor(), http::ServerOptions{},
      [this](http::Request request) { return answer(std::move(request)); }, null_log());
  auto listening = server_->listen();
  if (!listening) {
    throw std::runtime_error(listening.error().message);
  }
  endpoint_ = *listening;
  thread_ = std::thread([this] {
    const auto work = net::make_work_guard(context_);
    context_.run();
  });
}

LossyProxy::~LossyProxy() {
  context_.stop();
  thread_.join();
}

net::awaitable<http::Response> LossyProxy::answer(http::Request request) {
  ++requests_;
  http::Request on{.method = request.method, .target = request.target, .body = request.body};
  const bool writes = request.body.contains("request_put");
  const auto fate = writes ? fate_.exchange(Fate::kPass) : Fate::kPass;
  switch (fate) {
    case Fate::kPass:
      break;
    case Fate::kLoseRequest:
      throw std::runtime_error("lost on the way there");
    case Fate::kHoldBack:
      held_ = std::move(on);
      holds_ = true;
      throw std::runtime_error("not there yet");
    case Fate::kLoseReply:
      static_cast<void>(co_await client_.send(etcd_, std::move(on), kLong));
      throw std::runtime_error("lost on the way back");
  }
  auto response = co_await client_.send(etcd_, std::move(on), kLong);
  if (!response) {
    throw std::runtime_error(response.error().message);
  }
  co_return http::Response{.status = response->status, .body = response->body};
}

std::string LossyProxy::release() {
  if (!holds_.exchange(false)) {
    throw std::runtime_error("no request is held back");
  }
  auto response =
      net::co_spawn(context_, client_.send(etcd_, std::move(held_), kLong), net::use_future).get();
  return response ? response->body : response.error().message;
}

}  // namespace verger::test
