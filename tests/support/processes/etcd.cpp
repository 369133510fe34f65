#include "tests/support/processes/etcd.h"

#include <cstdlib>
#include <fmt/format.h>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "nodeagent/http/base64.h"
#include "tests/support/processes/https_caller.h"

namespace verger::test {
namespace {

constexpr const char* kFill = "fill/";

/// Where `./dev test` unpacks it, else where PATH finds it.
std::string etcd_program() {
  const auto unpacked = std::filesystem::path(VERGER_TOOLS_DIR) / "usr" / "bin" / "etcd";
  return std::filesystem::exists(unpacked) ? unpacked.string() : "etcd";
}

}  // namespace

EtcdServer::EtcdServer(const OpensslAuthority* authority, std::int64_t quota_bytes)
    : ports_(3), quota_bytes_(quota_bytes) {
  if (authority != nullptr) {
    authority->issue(directory_.path() / "server", "etcd", "IP:127.0.0.1");
    trusted_ = authority->root();
  }
  start();
}

std::string EtcdServer::url() const {
  return fmt::format("{}://127.0.0.1:{}", trusted_.empty() ? "http" : "https", ports_[0]);
}

std::string EtcdServer::metrics_url() const {
  return fmt::format("http://127.0.0.1:{}", ports_[2]);
}

std::pair<int, std::string> EtcdServer::ask(const std::string& route,
                                            const std::string& body) const {
  HttpsCaller caller;
  const auto answer =
      caller.ask(url(), {.method = "POST", .target = "/v3/" + route, .body = body}, false);
  if (!answer) {
    throw std::runtime_error(fmt::format("etcd: {}: {}", route, answer.error().message));
  }
  return {answer->status, answer->body};
}

void EtcdServer::fill() {
  const auto value = http::base64_encode(std::string(1'000'000, 'x'));
  for (int i = 0; i < 100; ++i) {
    const auto key = http::base64_encode(fmt::format("{}{}", kFill, i));
    const auto [status, answer] =
        ask("kv/put", fmt::format(R"({{"key":"{}","value":"{}"}})", key, value));
    if (status != 200) {
      if (!answer.contains("space exceeded")) {
        throw std::runtime_error("etcd: " + answer);
      }
      return;
    }
  }
  throw std::runtime_error("etcd has no quota");
}

void EtcdServer::make_room() {
  const auto must = [this](const std::string& route, const std::string& body) {
    const auto [status, answer] = ask(route, body);
    if (status != 200) {
      throw std::runtime_error(fmt::format("etcd: {}: {}", route, answer));
    }
    return nlohmann::json::parse(answer);
  };
  // "0" is the byte after "/".
  const auto deleted =
      must("kv/deleterange", fmt::format(R"({{"key":"{}","range_end":"{}"}})",
                                         http::base64_encode(kFill), http::base64_encode("fill0")));
  must("kv/compaction", fmt::format(R"({{"revision":"{}","physical":true}})",
                                    deleted.at("header").at("revision").get<std::string>()));
  must("maintenance/defragment", "{}");
  const auto listed = must("maintenance/alarm", R"({"action":"GET"})");
  for (const auto& alarm : listed.value("alarms", nlohmann::json::array())) {
    must("maintenance/alarm",
         fmt::format(R"({{"action":"DEACTIVATE","memberID":"{}","alarm":"NOSPACE"}})",
                     alarm.at("memberID").get<std::string>()));
  }
}

int EtcdServer::answered(const std::string& method, const std::string& code) const {
  HttpsCaller caller;
  const auto metrics = caller.get(metrics_url(), "/metrics");
  if (!metrics) {
    throw std::runtime_error("etcd: " + metrics.error().message);
  }
  const auto name =
      fmt::format(R"(grpc_server_handled_total{{grpc_code="{}",grpc_method="{}",)", code, method);
  const auto line = metrics->body.find("\n" + name);
  if (line == std::string::npos) {
    return 0;
  }
  return std::stoi(metrics->body.substr(metrics->body.find("} ", line) + 2));
}

std::string EtcdServer::log() const { return file_text(directory_.path() / "log"); }

void EtcdServer::kill() { process_.reset(); }

void EtcdServer::start() {
  const auto peer = fmt::format("http://127.0.0.1:{}", ports_[1]);
  const auto health_url = metrics_url();
  // setpriv: it never outlives the test.
  std::vector<std::string> command{"setpriv",
                                   "--pdeathsig",
                                   "KILL",
                                   etcd_program(),
                                   "--data-dir",
                                   (directory_.path() / "data").string(),
                                   "--listen-client-urls",
                                   url(),
                                   "--advertise-client-urls",
                                   url(),
                                   "--listen-peer-urls",
                                   peer,
                                   "--initial-advertise-peer-urls",
                                   peer,
                                   "--initial-cluster",
                                   "default=" + peer,
                                   "--listen-metrics-urls",
                                   health_url,
                                   "--heartbeat-interval",
                                   "50",
                                   "--election-timeout",
                                   "250"};
  if (quota_bytes_ > 0) {
    command.insert(command.end(), {"--quota-backend-bytes", std::to_string(quota_bytes_)});
  }
  if (!trusted_.empty()) {
    const auto own = (directory_.path() / "server").string();
    command.insert(command.end(), {"--cert-file", own + ".crt", "--key-file", own + ".key",
                                   "--client-cert-auth", "--trusted-ca-file", trusted_.string()});
  }
  process_.emplace(Process::Options{
      .command = std::move(command), .environment = {}, .output = directory_.path() / "log"});
  HttpsCaller caller;
  const bool answers = eventually(std::chrono::seconds(30), [&] {
    if (!process_->running()) {
      throw std::runtime_error("etcd ended: " + log());
    }
    const auto health = caller.get(health_url, "/health");
    return health && health->body.contains("true");
  });
  if (!answers) {
    throw std::runtime_error("etcd does not answer: " + log());
  }
}

}  // namespace verger::test
