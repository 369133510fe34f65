#include "controller/daemon/enrolled_agents.h"

#include <algorithm>
#include <fmt/format.h>

#include "controller/daemon/trusted_clients.h"

namespace verger::controller {
namespace {

constexpr std::string_view kNotEnrolled = "this journal has no enrolment of ";

Error not_the_agent(std::string_view of, std::string_view why, const http::CertificateInfo& shown) {
  return {Errc::kUnavailable,
          fmt::format("not the agent of {}: {} (it shows {}, serial {})", of, why,
                      shown.uris.empty() ? shown.subject : shown.uris.front(), shown.serial)};
}

bool is_believed(const EnrolledAgent& agent, const http::CertificateInfo& shown) {
  return std::ranges::find(shown.uris, certificates::agent_identity(agent.cluster, agent.node)) !=
             shown.uris.end() &&
         std::ranges::find(agent.serials, shown.serial) != agent.serials.end();
}

}  // namespace

std::string advice_about_unknown_issuer(const http::CertificateInfo& shown) {
  std::string agent;
  for (const auto& uri : shown.uris) {
    agent = agent.empty() ? certificates::agent_of_identity(uri) : agent;
  }
  if (agent.empty()) {
    return {};
  }
  // Nothing vouches for the certificate: what it says is shown, and is part of no command.
  const bool is_plain = std::ranges::all_of(agent, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_' || c == '/';
  });
  return fmt::format(
      "this agent is enrolled with another vergerd{}, whose authority issued that certificate; if "
      "this vergerd is to be its controller, enrol it again with a token of: verger agent token "
      "CLUSTER/NODE",
      is_plain ? ", as " + agent : "");
}

class EnrolledAgents::Router final : public http::Client {
 public:
  Router(EnrolledAgents& agents, http::Client& otherwise)
      : agents_(agents), otherwise_(otherwise) {}
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override {
    VERGER_CO_TRY(auto* own, agents_.client_for(to));
    auto& client = own == nullptr ? otherwise_ : *own;
    auto answer = co_await client.send(to, std::move(request), deadline);
    if (own == nullptr && to.tls && !answer && answer.error().code == Errc::kUnavailable) {
      if (auto why = co_await agents_.why_not_enrolled(std::move(to), deadline); !why.empty()) {
        co_return Error{Errc::kUnavailable, std::move(why)};
      }
    }
    co_return answer;
  }

 private:
  EnrolledAgents& agents_;
  http::Client& otherwise_;
};

Result<std::unique_ptr<EnrolledAgents>> EnrolledAgents::make(boost::asio::any_io_executor executor,
                                                             const http::TlsFiles& tls) {
  std::unique_ptr<EnrolledAgents> out(new EnrolledAgents(std::move(executor)));
  VERGER_TRY(out->tls_, http::TlsContext::client(tls));
  out->kept_ = std::make_shared<http::KeptConnections>(kConnectionsKept, kKeptConnectionUnused);
  return out;
}

void EnrolledAgents::attach(const Registry& registry, const AgentBook& book) {
  registry_ = &registry;
  book_ = &book;
}

std::unique_ptr<http::BeastClient> EnrolledAgents::make_client(
    std::function<Result<void>(const http::CertificateInfo&)> accept) const {
  http::BeastClientOptions options{.idle_lifetime = kConnectionUnused,
                                   .kept = kept_,
                                   .tls = tls_,
                                   .plain_to_loopback_only = true};
  options.accept_peer = std::move(accept);
  options.unknown_issuer_advice = advice_about_unknown_issuer;
  return std::make_unique<http::BeastClient>(executor_, std::move(options));
}

net::awaitable<std::string> EnrolledAgents::why_not_enrolled(http::Endpoint endpoint,
                                                             std::chrono::milliseconds deadline) {
  if (not_enrolled_ == nullptr) {
    not_enrolled_ = make_client([](const http::CertificateInfo& shown) -> Result<void> {
      const auto agent =
          shown.uris.empty() ? std::string() : certificates::agent_of_identity(shown.uris.front());
      return Error{
          Errc::kUnavailable,
          fmt::format("{}{} (its agent shows serial {} of vergerd's own authority): make a "
                      "token and enrol it again: verger agent token {}",
                      kNotEnrolled, agent.empty() ? shown.subject : agent, shown.serial, agent)};
    });
  }
  // Nothing is sent: no certificate is accepted here.
  const auto met =
      co_await not_enrolled_->send(std::move(endpoint), {.target = "/agent/v1/facts"}, deadline);
  const auto at = met ? std::string::npos : met.error().message.find(kNotEnrolled);
  co_return at == std::string::npos ? std::string() : met.error().message.substr(at);
}

void EnrolledAgents::close_unused() {
  const auto now = system_clock().monotonic();
  if (now - closed_at_ < kConnectionUnused) {
    return;
  }
  closed_at_ = now;
  for (auto& [identity, one] : clients_) {
    one.client->close_unused();
  }
}

http::Client& EnrolledAgents::client_of(const EnrolledAgent& agent) {
  close_unused();
  const auto identity = certificates::agent_identity(agent.cluster, agent.node);
  auto& one = clients_[identity];
  if (one.client == nullptr) {
    one.client = make_client([this, cluster = agent.cluster, node = agent.node,
                              identity](const http::CertificateInfo& shown) -> Result<void> {
      const auto of = fmt::format("{}/{}", cluster, node);
      if (std::ranges::find(shown.uris, identity) == shown.uris.end()) {
        return not_the_agent(of, "its certificate is another's; look at the agent's URL", shown);
      }
      const auto* known = book_->find(cluster, node);
      if (known == nullptr || !is_believed(*known, shown)) {
        return not_the_agent(of,
                             "its certificate is no longer the current one; enrol it again, "
                             "with a token of: verger agent token",
                             shown);
      }
      return {};
    });
  } else if (one.serials != agent.serials) {
    one.client->drop_connections();  // they may be of a certificate that is no longer accepted
  }
  one.serials = agent.serials;
  return *one.client;
}

http::Client& EnrolledAgents::routed(http::Client& otherwise) {
  auto& router = routers_[&otherwise];
  if (router == nullptr) {
    router = std::make_unique<Router>(*this, otherwise);
  }
  return *router;
}

const EnrolledAgent* EnrolledAgents::registered_at(const http::Endpoint& endpoint) {
  const auto url = endpoint.url();
  const auto look = [&]() -> const EnrolledAgent* {
    const auto found = places_.find(url);
    if (found == places_.end()) {
      return nullptr;
    }
    const auto config = registry_->find(found->second.cluster);
    const auto* node = config ? config->find(found->second.node) : nullptr;
    return node != nullptr && node->agent_url == url
               ? book_->find(found->second.cluster, found->second.node)
               : nullptr;
  };
  if (const auto* agent = look()) {
    return agent;
  }
  // The registry or the book has changed, or it belongs to no agent.
  places_.clear();
  for (const auto& agent : book_->agents()) {
    const auto config = registry_->find(agent.cluster);
    const auto* node = config ? config->find(agent.node) : nullptr;
    if (node != nullptr && !node->agent_url.empty()) {
      places_[node->agent_url] = {agent.cluster, agent.node};
    }
  }
  return look();
}

Result<http::Client*> EnrolledAgents::client_for(const http::Endpoint& endpoint) {
  if (book_ == nullptr) {
    return nullptr;
  }
  if (!book_->has_agents()) {
    return nullptr;
  }
  if (const auto* agent = registered_at(endpoint)) {
    if (!endpoint.tls) {
      return Error{Errc::kUnavailable,
                   fmt::format("{}: the agent of {}/{} has enrolled, so it is talked to over https "
                               "alone: register the cluster with https in the agent's URL",
                               endpoint.url(), agent->cluster, agent->node)};
    }
    return &client_of(*agent);
  }
  if (!endpoint.tls) {
    return nullptr;
  }
  for (const auto& config : registry_->list()) {
    if (std::ranges::find(config.nodes, endpoint.url(), &ClusterNode::agent_url) !=
        config.nodes.end()) {
      return nullptr;  // registered, and has not enrolled
    }
  }
  // Of an endpoint that is not registered: not a thing of each request.
  if (std::ranges::none_of(book_->agents(), [&](const EnrolledAgent& agent) {
        return std::ranges::find(agent.hosts, endpoint.host) != agent.hosts.end();
      })) {
    return nullptr;
  }
  if (newcomers_ == nullptr) {
    newcomers_ = make_client([this](const http::CertificateInfo& shown) -> Result<void> {
      for (const auto& agent : book_->agents()) {
        if (is_believed(agent, shown)) {
          return {};
        }
      }
      return not_the_agent("any registered node", "its certificate does not count", shown);
    });
  }
  newcomers_->drop_connections();  // what was believed a moment ago may not be now
  return newcomers_.get();
}

}  // namespace verger::controller
