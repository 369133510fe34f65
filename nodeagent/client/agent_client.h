#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "nodeagent/api/agent_facts.h"
#include "nodeagent/client/outcome.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/message.h"

namespace verger::client {

/// Calls the agent interface of one node (docs/formats/agent-interface.md). A value; `client`
/// outlives every call. `refused` carries the agent's problem code ("refused", "conflict",
/// "not_found", ...), or `unreachable`. Permits and operations may be sent again after `unknown`:
/// an id acts at most once.
class AgentClient {
 public:
  AgentClient(http::Client& client, http::Endpoint agent,
              std::chrono::milliseconds deadline = std::chrono::seconds(15));
  [[nodiscard]] const http::Endpoint& agent() const { return agent_; }

  net::awaitable<Outcome<api::AgentFacts>> facts() const;
  net::awaitable<Outcome<Nothing>> permit(api::Permit permit) const;
  /// done: the agent has it; how far it is says the state.
  net::awaitable<Outcome<api::OperationStatus>> start(api::OperationRequest request) const;
  net::awaitable<Outcome<api::OperationStatus>> operation(std::string id) const;
  net::awaitable<Outcome<api::OperationStatus>> cancel(std::string id) const;
  /// The request for a new certificate, PEM; of an enrolled agent.
  net::awaitable<Outcome<std::string>> certificate_request() const;
  /// done: the agent shows it from now on.
  net::awaitable<Outcome<Nothing>> install_certificate(std::string pem) const;
  /// unknown (computing) while it is computed: ask again.
  net::awaitable<Outcome<api::Digest>> digest(std::int64_t point) const;

 private:
  http::Client* client_;
  http::Endpoint agent_;
  std::chrono::milliseconds deadline_;
};

Outcome<api::AgentFacts> parse_answer_facts(const http::Response& response);
Outcome<Nothing> parse_answer_permit(const http::Response& response);
Outcome<api::OperationStatus> parse_answer_operation(const http::Response& response);
Outcome<std::string> parse_answer_certificate_request(const http::Response& response);
Outcome<api::Digest> parse_answer_digest(const http::Response& response);

}  // namespace verger::client
