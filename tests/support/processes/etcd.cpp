#include "tests/support/processes/etcd.h"

#include <cstdlib>
#include <fmt/format.h>
#include <stdexcept>

#include "tests/support/processes/https_caller.h"

namespace verger::test {
namespace {

/// Where `./dev test` unpacks it, else where PATH finds it.
std::string etcd_program() {
  const auto unpacked = std::filesystem::path(VERGER_TOOLS_DIR) / "usr" / "bin" / "etcd";
  return std::filesystem::exists(unpacked) ? unpacked.string() : "etcd";
}

}  // namespace

EtcdServer::EtcdServer(const OpensslAuthority* authority) : ports_(3) {
  if (authority != nullptr) {
    authority->issue(directory_.path() / "server", "etcd", "IP:127.0.0.1");
    trusted_ = authority->root();
  }
  start();
}

std::string EtcdServer::url() const {
  return fmt::format("{}://127.0.0.1:{}", trusted_.empty() ? "http" : "https", ports_[0]);
}

std::string EtcdServer::log() const { return file_text(directory_.path() / "log"); }

void EtcdServer::kill() { process_.reset(); }

void EtcdServer::start() {
  const auto peer = fmt::format("http://127.0.0.1:{}", ports_[1]);
  const auto health_url = fmt::format("http://127.0.0.1:{}", ports_[2]);
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
