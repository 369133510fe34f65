#include "nodeagent/client/agent_client.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"
#include "nodeagent/api/json_text.h"
#include "nodeagent/api/problem.h"
#include "nodeagent/client/detail/call.h"
#include "nodeagent/client/detail/common.h"

namespace verger::client {
namespace {

/// Longer than an agent counts.
constexpr std::chrono::seconds kEstimateDeadline{40};

/// 4xx and 503 are certain; after any other failure it is not known how far the agent got.
template <class T>
Outcome<T> agent_failure(const http::Response& response) {
  const bool certain =
      (response.status >= 400 && response.status < 500 && response.status != 408) ||
      response.status == 503;
  if (certain) {
    const auto problem = api::parse_problem(response.body);
    if (problem.has_value() && !problem->code.empty()) {
      return refused<T>(problem->code, problem->detail.empty() ? problem->title : problem->detail);
    }
  }
  return common_failure(response).as<T>();
}

template <class T>
Outcome<T> from(Result<T> parsed) {
  if (!parsed.has_value()) {
    return unknown<T>("unexpected_answer", parsed.error().message);
  }
  return done(std::move(*parsed));
}

http::Request json_request(std::string method, std::string target, std::string body) {
  return http::Request{
      .method = std::move(method),
      .target = std::move(target),
      .headers = {{"Accept", "application/json"}, {"Content-Type", "application/json"}},
      .body = std::move(body)};
}

http::Request get(std::string target) {
  return http::Request{
      .method = "GET", .target = std::move(target), .headers = {{"Accept", "application/json"}}};
}

std::string operation_target(std::string_view id) {
  return "/agent/v1/operations/" + http::percent_encode(id);
}

std::string file_target(std::string_view sha256) {
  return "/agent/v1/files/" + http::percent_encode(sha256);
}

}  // namespace

Outcome<api::AgentFacts> parse_answer_facts(const http::Response& response) {
  return response.status == 200 ? from(api::parse_agent_facts(response.body))
                                : agent_failure<api::AgentFacts>(response);
}

Outcome<Nothing> parse_answer_permit(const http::Response& response) {
  return response.status == 204 ? done(Nothing{}) : agent_failure<Nothing>(response);
}

Outcome<api::OperationStatus> parse_answer_operation(const http::Response& response) {
  return response.status == 200 || response.status == 202
             ? from(api::parse_operation_status(response.body))
             : agent_failure<api::OperationStatus>(response);
}

Outcome<api::StoredFile> parse_answer_file(const http::Response& response) {
  return response.status == 200 ? from(api::parse_stored_file(response.body))
                                : agent_failure<api::StoredFile>(response);
}

Outcome<std::vector<api::StoredFile>> parse_answer_files(const http::Response& response) {
  return response.status == 200 ? from(api::parse_stored_files(response.body))
                                : agent_failure<std::vector<api::StoredFile>>(response);
}

Outcome<std::string> parse_answer_certificate_request(const http::Response& response) {
  if (response.status != 200) {
    return agent_failure<std::string>(response);
  }
  const auto body = nlohmann::json::parse(response.body, nullptr, false);
  if (!body.is_object() || !body.value("request", nlohmann::json()).is_string()) {
    return unknown<std::string>("unexpected_answer", "the answer has no certificate request");
  }
  return done(body.at("request").get<std::string>());
}

Outcome<api::NodeCertificates> parse_answer_certificates(const http::Response& response) {
  return response.status == 200 ? from(api::parse_node_certificates(response.body))
                                : agent_failure<api::NodeCertificates>(response);
}

Outcome<api::CertificateFiles> parse_answer_candidate(const http::Response& response) {
  return response.status == 200 ? from(api::parse_certificate_files(response.body))
                                : agent_failure<api::CertificateFiles>(response);
}

Outcome<std::vector<api::PeerHandshake>> parse_answer_handshakes(const http::Response& response) {
  return response.status == 200 ? from(api::parse_peer_handshakes(response.body))
                                : agent_failure<std::vector<api::PeerHandshake>>(response);
}

Outcome<api::ServerConfig> parse_answer_server_config(const http::Response& response) {
  return response.status == 200 ? from(api::parse_server_config(response.body))
                                : agent_failure<api::ServerConfig>(response);
}

Outcome<api::ScavengeEstimate> parse_answer_estimate(const http::Response& response) {
  return response.status == 200 ? from(api::parse_scavenge_estimate(response.body))
                                : agent_failure<api::ScavengeEstimate>(response);
}

Outcome<std::vector<api::BackupRepository>> parse_answer_backup_repositories(
    const http::Response& response) {
  return response.status == 200 ? from(api::parse_backup_repositories(response.body))
                                : agent_failure<std::vector<api::BackupRepository>>(response);
}

Outcome<std::vector<api::BackupGeneration>> parse_answer_backups(const http::Response& response) {
  return response.status == 200 ? from(api::parse_backup_generations(response.body))
                                : agent_failure<std::vector<api::BackupGeneration>>(response);
}

AgentClient::AgentClient(http::Client& client, http::Endpoint agent,
                         std::chrono::milliseconds deadline)
    : client_(&client), agent_(std::move(agent)), deadline_(deadline) {}

net::awaitable<Outcome<api::AgentFacts>> AgentClient::facts(std::int64_t chunks_below) const {
  auto target = std::string("/agent/v1/facts");
  if (chunks_below >= 0) {
    target += fmt::format("?chunksBelow={}", chunks_below);
  }
  return call<api::AgentFacts>(client_, agent_, get(std::move(target)), deadline_,
                               &parse_answer_facts);
}

net::awaitable<Outcome<Nothing>> AgentClient::permit(api::Permit permit) const {
  return call<Nothing>(client_, agent_,
                       json_request("POST", "/agent/v1/permits", api::to_text(permit)), deadline_,
                       &parse_answer_permit);
}

net::awaitable<Outcome<api::OperationStatus>> AgentClient::start(
    api::OperationRequest request) const {
  return call<api::OperationStatus>(
      client_, agent_, json_request("POST", "/agent/v1/operations", api::to_text(request)),
      deadline_, &parse_answer_operation);
}

net::awaitable<Outcome<api::OperationStatus>> AgentClient::operation(std::string id) const {
  return call<api::OperationStatus>(client_, agent_, get(operation_target(id)), deadline_,
                                    &parse_answer_operation);
}

net::awaitable<Outcome<api::OperationStatus>> AgentClient::cancel(std::string id, bool keep) const {
  return call<api::OperationStatus>(
      client_, agent_,
      http::Request{.method = "POST",
                    .target = operation_target(id) + (keep ? "/cancel?keep=true" : "/cancel"),
                    .headers = {{"Accept", "application/json"}}},
      deadline_, &parse_answer_operation);
}

net::awaitable<Outcome<api::OperationStatus>> AgentClient::throttle(std::string id,
                                                                    api::Throttle throttle) const {
  return call<api::OperationStatus>(
      client_, agent_,
      json_request("POST", operation_target(id) + "/throttle", api::to_text(throttle)), deadline_,
      &parse_answer_operation);
}

net::awaitable<Outcome<std::string>> AgentClient::certificate_request() const {
  return call<std::string>(client_, agent_,
                           http::Request{.method = "POST",
                                         .target = "/agent/v1/certificate/request",
                                         .headers = {{"Accept", "application/json"}}},
                           deadline_, &parse_answer_certificate_request);
}

net::awaitable<Outcome<Nothing>> AgentClient::install_certificate(std::string pem) const {
  return call<Nothing>(client_, agent_,
                       json_request("PUT", "/agent/v1/certificate",
                                    nlohmann::json{{"certificate", std::move(pem)}}.dump()),
                       deadline_, &parse_answer_permit);
}

net::awaitable<Outcome<api::StoredFile>> AgentClient::put_file(
    std::string content, std::int64_t controller_epoch) const {
  auto target = fmt::format("{}?controllerEpoch={}", file_target(to_hex(sha256(as_bytes(content)))),
                            controller_epoch);
  return call<api::StoredFile>(
      client_, agent_,
      http::Request{
          .method = "PUT",
          .target = std::move(target),
          .headers = {{"Accept", "application/json"}, {"Content-Type", "application/octet-stream"}},
          .body = std::move(content)},
      deadline_, &parse_answer_file);
}

net::awaitable<Outcome<api::StoredFile>> AgentClient::find_file(std::string sha256) const {
  return call<api::StoredFile>(client_, agent_, get(file_target(sha256)), deadline_,
                               &parse_answer_file);
}

net::awaitable<Outcome<std::vector<api::StoredFile>>> AgentClient::files() const {
  return call<std::vector<api::StoredFile>>(client_, agent_, get("/agent/v1/files"), deadline_,
                                            &parse_answer_files);
}

net::awaitable<Outcome<Nothing>> AgentClient::delete_file(std::string sha256,
                                                          std::int64_t controller_epoch) const {
  return call<Nothing>(client_, agent_,
                       http::Request{.method = "DELETE",
                                     .target = fmt::format("{}?controllerEpoch={}",
                                                           file_target(sha256), controller_epoch),
                                     .headers = {{"Accept", "application/json"}}},
                       deadline_, &parse_answer_permit);
}

net::awaitable<Outcome<api::NodeCertificates>> AgentClient::certificates() const {
  return call<api::NodeCertificates>(client_, agent_, get("/agent/v1/certificates"), deadline_,
                                     &parse_answer_certificates);
}

net::awaitable<Outcome<api::CertificateFiles>> AgentClient::certificate_candidate(
    api::CertificateSource source) const {
  return call<api::CertificateFiles>(
      client_, agent_,
      json_request("POST", "/agent/v1/certificates/candidate", api::to_text(source)), deadline_,
      &parse_answer_candidate);
}

net::awaitable<Outcome<std::string>> AgentClient::certificate_key_request(
    api::CertificateKeyRequest request) const {
  return call<std::string>(
      client_, agent_,
      json_request("POST", "/agent/v1/certificates/request", api::to_text(request)), deadline_,
      &parse_answer_certificate_request);
}

net::awaitable<Outcome<std::vector<api::PeerHandshake>>> AgentClient::handshakes(
    api::HandshakesRequest request) const {
  return call<std::vector<api::PeerHandshake>>(
      client_, agent_,
      json_request("POST", "/agent/v1/certificates/handshakes", api::to_text(request)), deadline_,
      &parse_answer_handshakes);
}

net::awaitable<Outcome<api::ServerConfig>> AgentClient::server_config() const {
  return call<api::ServerConfig>(client_, agent_, get("/agent/v1/server-config"), deadline_,
                                 &parse_answer_server_config);
}

net::awaitable<Outcome<api::ScavengeEstimate>> AgentClient::scavenge_estimate(
    std::int32_t threshold, std::int64_t enough) const {
  return call<api::ScavengeEstimate>(
      client_, agent_,
      get(fmt::format("/agent/v1/scavenge/estimate?threshold={}&enough={}", threshold, enough)),
      kEstimateDeadline, &parse_answer_estimate);
}

net::awaitable<Outcome<std::vector<api::BackupRepository>>> AgentClient::backup_repositories()
    const {
  return call<std::vector<api::BackupRepository>>(client_, agent_,
                                                  get("/agent/v1/backups/repositories"), deadline_,
                                                  &parse_answer_backup_repositories);
}

net::awaitable<Outcome<std::vector<api::BackupGeneration>>> AgentClient::backups(
    std::string repository, std::string node) const {
  auto target = "/agent/v1/backups?repository=" + http::percent_encode(repository);
  if (!node.empty()) {
    target += "&node=" + http::percent_encode(node);
  }
  return call<std::vector<api::BackupGeneration>>(client_, agent_, get(std::move(target)),
                                                  deadline_, &parse_answer_backups);
}

}  // namespace verger::client
