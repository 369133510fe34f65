#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/tls.h"

namespace verger::test {

/// Calls over https (or http) as an operator with the built-in user would; blocks. One thread.
class HttpsCaller {
 public:
  /// `roots`: empty: plain HTTP only.
  explicit HttpsCaller(const std::filesystem::path& roots = {},
                       std::chrono::milliseconds deadline = std::chrono::seconds(10));

  Result<http::Response> ask(const std::string& url, http::Request request,
                             bool with_password = true);
  Result<http::Response> get(const std::string& url, const std::string& target);
  Result<http::Response> post(const std::string& url, const std::string& target);
  /// The serial that `url` shows to a new connection; empty where it shows none.
  std::string served_serial(const std::string& url);

 private:
  template <class T>
  T run(net::awaitable<T> work) {
    auto result = net::co_spawn(context_, std::move(work), net::use_future);
    context_.restart();
    context_.run();
    return result.get();
  }
  std::chrono::milliseconds deadline_;
  net::io_context context_{1};
  std::unique_ptr<http::BeastClient> client_;
};

}  // namespace verger::test
