#pragma once

#include <functional>

#include "nodeagent/client/outcome.h"
#include "nodeagent/http/client.h"

namespace verger::client {

/// What it means that no answer came.
template <class T>
Outcome<T> no_answer(const Error& error) {
  if (error.code == Errc::kUnknownOutcome) {
    return unknown<T>("no_answer", error.message);
  }
  return refused<T>("unreachable", error.message);
}

/// Sends one request and judges its answer. `client` outlives the call.
template <class T>
net::awaitable<Outcome<T>> call(http::Client* client, http::Endpoint to, http::Request request,
                                std::chrono::milliseconds deadline,
                                std::function<Outcome<T>(const http::Response&)> judge) {
  const auto endpoint = to;
  const auto method = request.method;
  const auto target = request.target;
  auto answer = co_await client->send(std::move(to), std::move(request), deadline);
  if (!answer.has_value()) {
    co_return no_answer<T>(answer.error());
  }
  auto outcome = judge(*answer);
  if (!outcome.done()) {
    outcome.why = method + " " + endpoint.url() + target + ": " + outcome.why;
  }
  co_return outcome;
}

/// Not sent at all.
template <class T>
net::awaitable<Outcome<T>> answer_at_once(Outcome<T> outcome) {
  co_return outcome;
}

}  // namespace verger::client
