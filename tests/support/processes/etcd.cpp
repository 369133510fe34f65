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

EtcdServer::EtcdServer() : ports_(2) { start(); }

std::string EtcdServer::url() const { return fmt::format("http://127.0.0.1:{}", ports_[0]); }

std::string EtcdServer::log() const { return file_text(directory_.path() / "log"); }

void EtcdServer::kill() { process_.reset(); }

void EtcdServer::start() {
  const auto peer = fmt::format("http://127.0.0.1:{}", ports_[1]);
  process_.emplace(Process::Options{.command = {"setpriv",
                                                "--pdeathsig",
                                                "KILL",  // never outlives the test
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
                                                "--heartbeat-interval",
                                                "50",
                                                "--election-timeout",
                                                "250"},
                                    .environment = {},
                                    .output = directory_.path() / "log"});
  HttpsCaller caller;
  const bool answers = eventually(std::chrono::seconds(30), [&] {
    if (!process_->running()) {
      throw std::runtime_error("etcd ended: " + log());
    }
    const auto health = caller.get(url(), "/health");
    return health && health->body.contains("true");
  });
  if (!answers) {
    throw std::runtime_error("etcd does not answer: " + log());
  }
}

}  // namespace verger::test
