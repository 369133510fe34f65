#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/server.h"

namespace verger::test {

/// Stands between a journal and etcd, on a thread of its own, and does to transactions that write
/// what a network does.
class LossyProxy {
 public:
  enum class Fate : std::uint8_t {
    kPass,
    kLoseRequest,  ///< etcd never gets it
    kLoseReply,    ///< etcd carries it out, the reply is lost
    kHoldBack,     ///< etcd gets it when release() says so
  };

  explicit LossyProxy(http::Endpoint etcd);
  ~LossyProxy();
  LossyProxy(const LossyProxy&) = delete;
  LossyProxy& operator=(const LossyProxy&) = delete;

  [[nodiscard]] http::Endpoint endpoint() const { return endpoint_; }
  /// Of the next request that writes; those after it pass.
  void next(Fate fate) { fate_ = fate; }
  /// Lets the one that is held back continue. What etcd answered to it.
  std::string release();
  [[nodiscard]] int requests() const { return requests_; }

 private:
  net::awaitable<http::Response> answer(http::Request request);

  net::io_context context_{1};
  http::Endpoint etcd_;
  http::BeastClient client_{context_.get_executor()};
  std::unique_ptr<http::Server> server_;
  http::Endpoint endpoint_;
  std::atomic<Fate> fate_ = Fate::kPass;
  std::atomic<int> requests_ = 0;
  http::Request held_;
  std::atomic<bool> holds_ = false;
  std::thread thread_;
};

}  // namespace verger::test
