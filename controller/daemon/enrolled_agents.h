#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "controller/cluster/agent_book.h"
#include "controller/cluster/registry.h"
#include "engine/base/clock.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/tls.h"

namespace verger::controller {

/// What to do about an agent whose certificate no trusted root vouches for: that of one that is
/// enrolled with another vergerd needs no root, but another enrolment. Empty: it is no such agent.
std::string advice_about_unknown_issuer(const http::CertificateInfo& shown);

/// The HTTP clients for agents that have enrolled, one for each: it sends nothing to a peer with
/// another certificate than that agent's own. One executor; everything handed out lives as long as
/// this object.
class EnrolledAgents {
 public:
  /// `tls`: vergerd's own certificate of the agents' authority, and that authority's root.
  /// Errors: those of http::TlsContext.
  static Result<std::unique_ptr<EnrolledAgents>> make(boost::asio::any_io_executor executor,
                                                      const http::TlsFiles& tls);
  /// Who has enrolled, and where; they outlive every request. Until then no agent has.
  void attach(const Registry& registry, const AgentBook& book);
  /// After vergerd's own certificate was made anew.
  Result<void> reload() { return tls_->reload(); }

  http::Client& client_of(const EnrolledAgent& agent);
  /// A client that reaches each registered agent which has enrolled by its own client, and all
  /// else by `otherwise`. An endpoint that is not registered yet (`cluster add` has its first look)
  /// may show the certificate of any agent that is believed and has such a host.
  http::Client& routed(http::Client& otherwise);

 private:
  class Router;
  struct Place {
    std::string cluster;
    std::string node;
  };
  struct One {
    std::vector<std::string> serials;  ///< that were accepted when its connections were made
    std::unique_ptr<http::BeastClient> client;
  };
  explicit EnrolledAgents(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  /// nullptr: not an enrolled agent's. Error: kUnavailable: it is, but the URL is plain HTTP.
  Result<http::Client*> client_for(const http::Endpoint& endpoint);
  /// Of an agent that is not enrolled here, and that shows a certificate of this very
  /// authority: what has happened and what to do. Empty: it is not one of those.
  net::awaitable<std::string> why_not_enrolled(http::Endpoint endpoint,
                                               std::chrono::milliseconds deadline);
  /// Of all agents, now and then.
  void close_unused();
  const EnrolledAgent* registered_at(const http::Endpoint& endpoint);
  std::unique_ptr<http::BeastClient> make_client(
      std::function<Result<void>(const http::CertificateInfo&)> accept) const;

  boost::asio::any_io_executor executor_;
  std::shared_ptr<http::TlsContext> tls_;
  const Registry* registry_ = nullptr;
  const AgentBook* book_ = nullptr;
  std::map<std::string, Place> places_;  ///< by the agent's URL, as last looked up
  std::map<std::string, One> clients_;   ///< by identity
  Monotonic closed_at_{};
  std::shared_ptr<http::KeptConnections> kept_;
  std::unique_ptr<http::BeastClient> newcomers_;
  std::unique_ptr<http::BeastClient> not_enrolled_;  ///< accepts no peer, and says whom it met
  std::map<http::Client*, std::unique_ptr<http::Client>> routers_;
};

}  // namespace verger::controller
