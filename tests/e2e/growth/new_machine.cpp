#include "tests/e2e/growth/new_machine.h"

#include <fmt/format.h>
#include <fstream>
#include <stdexcept>

#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/service_scripts.h"

namespace verger::test {
namespace {

constexpr std::size_t kLogTail = 3000;
constexpr const char* kLifeSeconds = "300";

}  // namespace

NewMachine::NewMachine(const RealCluster& cluster, std::string name, bool read_only_replica,
                       const Environment& of_agent, int size_in_file)
    : name_(std::move(name)) {
  std::string seeds;
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    seeds += fmt::format("{}127.0.0.1:{}", seeds.empty() ? "" : ",", cluster.node_port(i));
  }
  std::vector<std::string> server{program("verger-agent"),
                                  "--role",
                                  "node",
                                  "--db",
                                  database().string(),
                                  "--node-port",
                                  std::to_string(ports_[0]),
                                  "--replication-port",
                                  std::to_string(ports_[1]),
                                  "--max-mem-table-size",
                                  "200",
                                  "--stream-existence-filter-size",
                                  "10000",
                                  "--fast-timings",
                                  "--enable-atom-pub-over-http",
                                  "--end-after-seconds",
                                  kLifeSeconds};
  const auto file = directory_.path() / "server.yaml";
  if (size_in_file > 0) {
    std::ofstream(file) << fmt::format("ClusterSize: {}\nGossipSeed: {}\n", size_in_file, seeds);
    server.insert(server.end(), {"--config", file.string()});
  } else {
    server.insert(server.end(),
                  {"--cluster-size", std::to_string(RealCluster::kNodes), "--gossip-seed", seeds});
  }
  if (read_only_replica) {
    server.emplace_back("--read-only-replica");
  }
  std::filesystem::create_directories(database());
  std::filesystem::create_directories(kept_stopped().parent_path());
  std::ofstream(kept_stopped()).flush();
  write_scripts(server);
  agent_command_ = {program("verger-agent"),
                    "--role",
                    "agent",
                    "--node",
                    url(),
                    "--db",
                    database().string(),
                    "--state",
                    kept_stopped().parent_path().string(),
                    "--agent-port",
                    std::to_string(ports_[2]),
                    "--controller-token-file",
                    cluster.agents_token().string(),
                    "--backup-repositories",
                    cluster.repository_files().string(),
                    "--agent-poll-interval-ms",
                    "50",
                    "--start-command",
                    "/bin/sh " + script("start").string(),
                    "--stop-command",
                    "/bin/sh " + script("stop").string(),
                    "--end-after-seconds",
                    kLifeSeconds};
  if (size_in_file > 0) {
    agent_command_.insert(agent_command_.end(), {"--server-config", file.string()});
  }
  start_agent(of_agent);
  HttpsCaller caller;
  if (!eventually(std::chrono::seconds(30), [&] {
        return caller.ask(agent_url(), {.method = "GET", .target = "/agent/v1/facts"}).has_value();
      })) {
    throw std::runtime_error("the agent of " + name_ + " does not answer" + logs());
  }
}

void NewMachine::start_agent(const Environment& environment) {
  agent_.emplace(Process::Options{.command = agent_command_,
                                  .environment = environment,
                                  .output = directory_.path() / "agent.log"});
}

void NewMachine::restart_dead() {
  if (!agent_->running()) {
    start_agent({});
  }
}

void NewMachine::boot() {
  if (!std::filesystem::exists(kept_stopped())) {
    run({"/bin/sh", script("start").string()});
  }
  start_agent({});
}

NewMachine::~NewMachine() {
  agent_.reset();  // first: it would start its server again
  run({"/bin/sh", "-c", fmt::format("kill -9 $(cat {})", (directory_.path() / "pid").string())});
}

std::filesystem::path NewMachine::script(const std::string& verb) const {
  return directory_.path() / (verb + ".sh");
}

void NewMachine::write_scripts(const std::vector<std::string>& server) const {
  write_service_scripts({.start = script("start"),
                         .stop = script("stop"),
                         .pid = directory_.path() / "pid",
                         .log = directory_.path() / "server.log",
                         .command = server});
}

std::string NewMachine::url() const { return fmt::format("http://127.0.0.1:{}", ports_[0]); }
std::string NewMachine::agent_url() const { return fmt::format("http://127.0.0.1:{}", ports_[2]); }

bool NewMachine::server_runs() const {
  HttpsCaller caller;
  return caller.ask(url(), {.method = "GET", .target = "/gossip"}).has_value();
}

std::vector<std::string> NewMachine::as_options() const {
  return {"--node", fmt::format("{}={}", name_, url()), "--agent", agent_url()};
}

std::string NewMachine::logs() const {
  std::string text;
  for (const auto* name : {"agent.log", "server.log"}) {
    const auto log = file_text(directory_.path() / name);
    text += fmt::format("\n--- {} {}\n{}", name_, name,
                        log.substr(log.size() > kLogTail ? log.size() - kLogTail : 0));
  }
  return text;
}

}  // namespace verger::test
