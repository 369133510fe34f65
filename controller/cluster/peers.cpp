#include "controller/cluster/peers.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "nodeagent/client/judge.h"

namespace verger::controller {
namespace {

/// "200, but it says no more than that": the request was taken, which is all that these calls
/// promise. What became of it is for the caller to see.
template <class T>
bool was_taken(const client::Outcome<T>& outcome) {
  return outcome.done() ||
         (outcome.unknown() && (outcome.code == "queued" || outcome.code == "accepted"));
}

template <class T>
Error error_of(const client::Outcome<T>& outcome) {
  return client::to_error(outcome.verdict, outcome.code, outcome.why);
}

Result<void> taken(const client::Outcome<client::Nothing>& outcome) {
  if (was_taken(outcome)) {
    return {};
  }
  return error_of(outcome);
}

planner::AutoScavenge to_planner(client::AutoScavengeState state) {
  switch (state) {
    case client::AutoScavengeState::kNotInstalled:
    case client::AutoScavengeState::kNotEnabled:
      return planner::AutoScavenge::kAbsent;
    case client::AutoScavengeState::kNotConfigured:
      return planner::AutoScavenge::kNotConfigured;
    case client::AutoScavengeState::kWaiting:
      return planner::AutoScavenge::kWaiting;
    case client::AutoScavengeState::kInProgress:
      return planner::AutoScavenge::kInProgress;
    case client::AutoScavengeState::kPausing:
      return planner::AutoScavenge::kPausing;
    case client::AutoScavengeState::kPaused:
      return planner::AutoScavenge::kPaused;
  }
  return planner::AutoScavenge::kUnknown;
}

}  // namespace

Peers::Peers(Network network, ClusterConfig cluster)
    : clients_{.nodes = &network.client, .agents = &network.client},
      deadline_(network.request_deadline),
      cluster_(std::move(cluster)),
      served_chain_(network.served_chain),
      roots_of_(network.roots_of) {
  if (network.clients_of) {
    if (auto clients = network.clients_of(cluster_.trusted_roots)) {
      clients_ = *clients;
    } else {
      no_client_ =
          clients.error().within(fmt::format("trusted roots of cluster {}", cluster_.name));
      if (clients.error().code == Errc::kNotFound) {
        no_client_->message +=
            "; --ca names a file on vergerd's machine, in trusted-roots of its data directory "
            "unless it is absolute";
      }
    }
  }
  if (cluster_.credentials.empty()) {
    return;
  }
  auto found = network.credentials.find(cluster_.credentials);
  if (found) {
    credentials_ = *std::move(found);
  } else {
    credentials_problem_ = found.error().message;
  }
}

bool Peers::has_agent(std::string_view node) const {
  const auto* found = cluster_.find(node);
  return found != nullptr && !found->agent_url.empty();
}

Result<client::NodeClient> Peers::node_client(std::string_view node) const {
  const auto* found = cluster_.find(node);
  if (found == nullptr) {
    return Error{Errc::kNotFound, fmt::format("cluster {} has no node {}", cluster_.name, node)};
  }
  if (no_client_) {
    return *no_client_;
  }
  VERGER_TRY(auto endpoint, http::parse_endpoint(found->url));
  std::optional<client::Credentials> shown;
  if (credentials_) {
    VERGER_RETURN_IF_ERROR(check_host(*credentials_, cluster_.credentials, endpoint));
    shown = client::Credentials{credentials_->user, credentials_->password};
  }
  return client::NodeClient(*clients_.nodes, std::move(endpoint), std::move(shown), {}, deadline_);
}

Result<client::AgentClient> Peers::agent_client(std::string_view node) const {
  const auto* found = cluster_.find(node);
  if (found == nullptr || found->agent_url.empty()) {
    return Error{Errc::kNotFound, fmt::format("{} of {} has no agent", node, cluster_.name)};
  }
  if (no_client_) {
    return *no_client_;
  }
  VERGER_TRY(auto endpoint, http::parse_endpoint(found->agent_url, http::kAgentPort));
  return client::AgentClient(*clients_.agents, std::move(endpoint), deadline_);
}

net::awaitable<Result<api::Gossip>> Peers::gossip(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return client::to_result(co_await client.gossip());
}

net::awaitable<Result<api::NodeInfo>> Peers::info(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return client::to_result(co_await client.info());
}

net::awaitable<Result<std::vector<std::string>>> Peers::own_names(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  VERGER_CO_TRY(const auto gossip, client::to_result(co_await client.gossip()));
  co_return client::own_names(gossip, client.node());
}

net::awaitable<Result<client::NodeSettings>> Peers::settings(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return client::to_result(co_await client.settings());
}

net::awaitable<Result<client::LastScavenge>> Peers::last_scavenge(std::string node,
                                                                  std::string version) {
  VERGER_CO_TRY(auto client, node_client(node));
  client.set_dialect(client::NodeDialect::of_text(version).value_or(client.dialect()));
  co_return client::to_result(co_await client.last_scavenge());
}

net::awaitable<Result<api::CurrentScavenge>> Peers::current_scavenge(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  auto outcome = co_await client.current_scavenge();
  if (!outcome.done() && !credentials_problem_.empty()) {
    co_return Error{Errc::kUnauthorized, credentials_problem_};
  }
  co_return client::to_result(std::move(outcome));
}

net::awaitable<Result<std::string>> Peers::start_scavenge(std::string node,
                                                          ScavengeParameters parameters) {
  VERGER_CO_TRY(const auto client, node_client(node));
  client::ScavengeParameters wanted;
  wanted.threads = parameters.threads;
  wanted.threshold = parameters.threshold;
  wanted.throttle_percent = parameters.throttle_percent;
  wanted.sync_only = parameters.sync_only;
  const auto outcome = co_await client.start_scavenge(wanted);
  if (was_taken(outcome) && outcome.value) {
    co_return outcome.value->id;
  }
  co_return error_of(outcome);
}

net::awaitable<Result<void>> Peers::stop_scavenge(std::string node, std::string id) {
  VERGER_CO_TRY(const auto client, node_client(node));
  const auto outcome = co_await client.stop_scavenge(id);
  if (outcome.code == "nothing_to_stop") {
    co_return Error{Errc::kNotFound, outcome.why};
  }
  if (outcome.done() || outcome.code == "stopping") {
    co_return Result<void>{};
  }
  co_return error_of(outcome);
}

net::awaitable<Result<std::vector<api::ScavengeEvent>>> Peers::scavenge_log(std::string node,
                                                                            std::string id) {
  constexpr std::int32_t kNewest = 10;  // the end is the last entry, or close to it
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return client::to_result(co_await client.scavenge_log(id, kNewest));
}

net::awaitable<Result<std::vector<api::ScavengeEvent>>> Peers::recent_scavenges(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return client::to_result(co_await client.scavenges());
}

net::awaitable<Result<std::int64_t>> Peers::newest_scavenge_point(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  const auto page = co_await client.read_backward("$scavengePoints", std::nullopt, 1);
  if (page.done()) {
    if (page.value->events.size() == 1 && page.value->events.front().type == "$scavengePoint") {
      co_return page.value->events.front().number;
    }
    co_return Error{Errc::kUnsupported, "$scavengePoints does not end in a scavenge point"};
  }
  if (page.code == "not_found") {
    co_return -1;
  }
  constexpr std::array<std::string_view, 6> kAskAgain = {
      "unreachable", "not_ready", "too_busy", "no_answer", "late", "write_timeout"};
  if (std::ranges::find(kAskAgain, page.code) != kAskAgain.end()) {
    co_return error_of(page);
  }
  co_return Error{Errc::kUnsupported, page.why};
}

net::awaitable<Result<void>> Peers::resign(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return taken(co_await client.resign());
}

net::awaitable<Result<void>> Peers::set_priority(std::string node, std::int32_t priority) {
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return taken(co_await client.set_priority(priority));
}

Result<client::NodeClient> Peers::auto_scavenge_client(const std::string& node) const {
  VERGER_TRY(auto client, node_client(node));
  auto dialect = client.dialect();
  dialect.may_auto_scavenge = true;  // queried only where the version may have it
  client.set_dialect(dialect);
  return client;
}

net::awaitable<Result<planner::AutoScavenge>> Peers::auto_scavenge(std::string node) {
  VERGER_CO_TRY(const auto client, auto_scavenge_client(node));
  const auto outcome = co_await client.auto_scavenge();
  if (outcome.done()) {
    co_return to_planner(outcome.value->state);
  }
  if (outcome.code == "not_installed" || outcome.code == "not_enabled") {
    co_return planner::AutoScavenge::kAbsent;
  }
  co_return error_of(outcome);
}

net::awaitable<Result<void>> Peers::pause_auto_scavenge(std::string node) {
  VERGER_CO_TRY(const auto client, auto_scavenge_client(node));
  const auto outcome = co_await client.pause_auto_scavenge();
  co_return outcome.done() ? Result<void>() : error_of(outcome);
}

net::awaitable<Result<void>> Peers::resume_auto_scavenge(std::string node) {
  VERGER_CO_TRY(const auto client, auto_scavenge_client(node));
  const auto outcome = co_await client.resume_auto_scavenge();
  co_return outcome.done() ? Result<void>() : error_of(outcome);
}

net::awaitable<Result<std::vector<client::ServerWork>>> Peers::projections(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return client::to_result(co_await client.projections());
}

net::awaitable<Result<std::vector<client::ServerWork>>> Peers::subscriptions(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return client::to_result(co_await client.subscriptions());
}

net::awaitable<Result<void>> Peers::enable_projection(std::string node, std::string name) {
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return taken(co_await client.enable_projection(std::move(name)));
}

net::awaitable<Result<void>> Peers::restart_projections(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return taken(co_await client.restart_projections());
}

net::awaitable<Result<void>> Peers::restart_subscriptions(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  co_return taken(co_await client.restart_subscriptions());
}

net::awaitable<Result<std::string>> Peers::index_status(std::string node) {
  VERGER_CO_TRY(const auto client, node_client(node));
  VERGER_CO_TRY(const auto lines, client::to_result(co_await client.metrics()));
  co_return lines.index;
}

net::awaitable<Result<std::string>> Peers::served_chain(std::string node) {
  const auto* found = cluster_.find(node);
  if (found == nullptr) {
    co_return Error{Errc::kNotFound, fmt::format("cluster {} has no node {}", cluster_.name, node)};
  }
  VERGER_CO_TRY(auto endpoint, http::parse_endpoint(found->url));
  if (!endpoint.tls || !served_chain_) {
    co_return Error{Errc::kUnsupported,
                    endpoint.tls ? "certificates are not looked at here"
                                 : fmt::format("{} is no https URL: the node shows no certificate",
                                               found->url)};
  }
  co_return co_await served_chain_(std::move(endpoint));
}

net::awaitable<Result<api::AgentFacts>> Peers::facts(std::string node, std::int64_t chunks_below) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.facts(chunks_below));
}

net::awaitable<Result<void>> Peers::permit(std::string node, api::Permit permit) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  const auto outcome = co_await client.permit(permit);
  if (outcome.done()) {
    co_return Result<void>{};
  }
  co_return error_of(outcome);
}

net::awaitable<Result<api::OperationStatus>> Peers::start_operation(std::string node,
                                                                    api::OperationRequest request) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.start(request));
}

net::awaitable<Result<api::OperationStatus>> Peers::operation(std::string node, std::string id) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.operation(id));
}

net::awaitable<Result<void>> Peers::cancel_operation(std::string node, std::string id, bool keep) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  const auto outcome = co_await client.cancel(std::move(id), keep);
  co_return outcome.done() ? Result<void>() : error_of(outcome);
}

net::awaitable<Result<void>> Peers::throttle_operation(std::string node, std::string id,
                                                       api::Throttle throttle) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  const auto outcome = co_await client.throttle(std::move(id), throttle);
  co_return outcome.done() ? Result<void>() : error_of(outcome);
}

net::awaitable<Result<api::StoredFile>> Peers::put_file(std::string node, std::string content,
                                                        std::int64_t controller_epoch) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.put_file(std::move(content), controller_epoch));
}

net::awaitable<Result<api::StoredFile>> Peers::find_file(std::string node, std::string sha256) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.find_file(std::move(sha256)));
}

net::awaitable<Result<void>> Peers::delete_file(std::string node, std::string sha256,
                                                std::int64_t controller_epoch) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  const auto outcome = co_await client.delete_file(std::move(sha256), controller_epoch);
  if (outcome.done()) {
    co_return Result<void>{};
  }
  auto error = error_of(outcome);
  co_return error.code == Errc::kNotFound ? Result<void>() : Result<void>(std::move(error));
}

std::vector<http::CertificateInfo> Peers::trusted_roots() const {
  return roots_of_ ? roots_of_(cluster_.trusted_roots) : std::vector<http::CertificateInfo>();
}

net::awaitable<Result<api::NodeCertificates>> Peers::certificates(std::string node) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.certificates());
}

net::awaitable<Result<api::CertificateFiles>> Peers::certificate_candidate(
    std::string node, api::CertificateSource source) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.certificate_candidate(std::move(source)));
}

net::awaitable<Result<std::string>> Peers::certificate_request(std::string node,
                                                               api::CertificateKeyRequest wanted) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.certificate_key_request(std::move(wanted)));
}

net::awaitable<Result<std::vector<api::PeerHandshake>>> Peers::certificate_handshakes(
    std::string node, api::HandshakesRequest request) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.handshakes(std::move(request)));
}

net::awaitable<Result<api::ServerConfig>> Peers::server_config(std::string node) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.server_config());
}

net::awaitable<Result<void>> Peers::read_a_stream(std::string node) {
  const auto read = co_await recent_scavenges(std::move(node));
  co_return read ? Result<void>() : Result<void>(read.error());
}

net::awaitable<Result<api::ScavengeEstimate>> Peers::scavenge_estimate(std::string node,
                                                                       std::int32_t threshold,
                                                                       std::int64_t enough) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.scavenge_estimate(threshold, enough));
}

net::awaitable<Result<std::vector<api::BackupRepository>>> Peers::backup_repositories(
    std::string node) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.backup_repositories());
}

net::awaitable<Result<std::vector<api::BackupGeneration>>> Peers::backups(std::string node,
                                                                          std::string repository) {
  VERGER_CO_TRY(const auto client, agent_client(node));
  co_return client::to_result(co_await client.backups(std::move(repository)));
}

}  // namespace verger::controller
