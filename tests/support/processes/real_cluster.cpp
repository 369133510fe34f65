#include "tests/support/processes/real_cluster.h"

#include <fmt/format.h>
#include <fstream>
#include <stdexcept>

#include "engine/base/private_file.h"
#include "tests/support/fixtures.h"
#include "tests/support/processes/service_scripts.h"

namespace verger::test {
namespace {

using nlohmann::json;

constexpr std::size_t kLogTail = 3000;

}  // namespace

RealCluster::RealCluster() : RealCluster(Options{}) {}

RealCluster::RealCluster(Options options) : options_(std::move(options)), ports_(3 * kNodes + 2) {
  for (std::size_t i = 0; i < kNodes; ++i) {
    if (options_.files.empty()) {
      unpack_fixture(options_.database, node_directory(i));
    } else {
      std::filesystem::create_directories(node_directory(i).parent_path());
      std::filesystem::copy(options_.files, node_directory(i),
                            std::filesystem::copy_options::recursive);
    }
  }
  if (options_.backups) {
    std::filesystem::create_directories(repository());
    std::filesystem::create_directories(repository_files());
    std::ofstream(repository_files() / "main.json")
        << json{{"location", repository().string()}}.dump() << '\n';
    for (std::size_t i = 0; i < kNodes; ++i) {
      std::filesystem::create_directories(node_directory(i).parent_path() / "scratch");
    }
  }
  if (options_.mishaps) {
    std::vector<std::vector<std::uint16_t>> ports;
    for (std::size_t i = 0; i < kNodes; ++i) {
      ports.push_back({ports_[i], ports_[kNodes + i]});
    }
    links_.emplace(std::move(ports));
  }
  if (!options_.tls) {
    // Nodes and agents are started before the vergerd that would make it.
    if (const auto made = write_private_file(
            agents_token(), "a token of the tests, as long as one has to be\n", IfThere::kReplace);
        !made) {
      throw std::runtime_error(made.error().message);
    }
    return;
  }
  authority_.emplace(directory_.path() / "authority", "Verger test root");
  for (std::size_t i = 0; i < kNodes; ++i) {
    std::filesystem::create_directories(certificates_of(i) / "roots");
    std::filesystem::copy_file(authority_->root(), certificates_of(i) / "roots" / "ca.crt");
    issue_for_node(i, *authority_);
    std::filesystem::create_directories(agent_certificates(i));
    authority_->issue(agent_certificates(i) / "agent", "verger-agent", "IP:127.0.0.1");
  }
  std::filesystem::copy_file(authority_->root(), accepted_roots());
  authority_->issue(directory_.path() / "vergerd", "vergerd", "", "clientAuth");
  authority_->issue(directory_.path() / "api", "vergerd", "IP:127.0.0.1", "serverAuth");
  std::filesystem::create_directories(controller_directory() / "credentials");
  std::ofstream(controller_directory() / "credentials" / "orders")
      << "admin\nchangeit\n127.0.0.1:* localhost:*\n";
}

RealCluster::~RealCluster() {
  // Agents and controller first: no service is started again.
  controller_.reset();
  second_.reset();
  for (auto& agent : agents_) {
    agent.reset();
  }
  for (std::size_t i = 0; options_.services && i < kNodes; ++i) {
    kill_server(i);
  }
}

void RealCluster::kill_server(std::size_t index) const {
  run({"/bin/sh", "-c", fmt::format("kill -9 $(cat {}.pid)", script(index, "start").string())});
}

std::filesystem::path RealCluster::script(std::size_t index, const std::string& verb) const {
  return directory_.path() / fmt::format("n{}", index + 1) / (verb + ".sh");
}

std::filesystem::path RealCluster::agent_state(std::size_t index) const {
  return directory_.path() / fmt::format("n{}", index + 1) / "agent";
}

std::filesystem::path RealCluster::config_file(std::size_t index) const {
  return directory_.path() / fmt::format("n{}", index + 1) / "server.yaml";
}

void RealCluster::write_scripts(std::size_t index) const {
  const auto start = script(index, "start");
  write_service_scripts({.start = start,
                         .stop = script(index, "stop"),
                         .pid = start.string() + ".pid",
                         .log = log_of(fmt::format("n{}", index + 1)),
                         .command = node_command(index)});
}

std::filesystem::path RealCluster::node_directory(std::size_t index) const {
  return directory_.path() / fmt::format("n{}", index + 1) / "db";
}

std::filesystem::path RealCluster::agents_token() const {
  return directory_.path() / "agents-token";
}

std::vector<std::string> RealCluster::controller_of_agent(std::size_t index) const {
  if (!options_.tls) {
    return {"--controller-token-file", agents_token().string()};
  }
  const auto own = (agent_certificates(index) / "agent").string();
  return {"--agent-trusted-roots",
          authority_->root().string(),
          "--agent-controller-name",
          "vergerd",
          "--agent-certificate-file",
          own + ".crt",
          "--agent-certificate-private-key-file",
          own + ".key"};
}

std::vector<std::string> RealCluster::backups_of_agent(std::size_t index) const {
  if (!options_.backups) {
    return {};
  }
  const auto scratch = directory_.path() / fmt::format("n{}", index + 1) / "scratch";
  return {"--backup-repositories", repository_files().string(), "--backup-scratch",
          scratch.string()};
}

std::filesystem::path RealCluster::agent_certificates(std::size_t index) const {
  return directory_.path() / fmt::format("n{}", index + 1) / "agent-certificates";
}

std::filesystem::path RealCluster::accepted_roots() const {
  return directory_.path() / "accepted-roots.crt";
}

void RealCluster::accept_nodes_of(const OpensslAuthority& other) const {
  std::ofstream(accepted_roots(), std::ios::app) << file_text(other.root());
}

void RealCluster::sign_as(const std::string& name, const OpensslAuthority& authority) const {
  const auto directory = controller_directory() / "authorities";
  std::filesystem::create_directories(directory);
  std::filesystem::copy_file(authority.root(), directory / (name + ".crt"));
  std::filesystem::copy_file(authority.key(), directory / (name + ".key"));
}

std::filesystem::path RealCluster::certificates_of(std::size_t index) const {
  return directory_.path() / fmt::format("n{}", index + 1) / "certificates";
}

std::string RealCluster::issue_for_node(std::size_t index, const OpensslAuthority& by) {
  return by.issue(certificates_of(index) / "node", "verger-node", "IP:127.0.0.1,DNS:localhost");
}

std::filesystem::path RealCluster::log_of(const std::string& name) const {
  return directory_.path() / (name + ".log");
}

std::filesystem::path RealCluster::slowness_of(std::size_t index) const {
  return directory_.path() / fmt::format("n{}", index + 1) / "slow";
}

void RealCluster::slow_disk(std::size_t index, std::chrono::milliseconds longest_sync) {
  std::ofstream(slowness_of(index)) << longest_sync.count();
}

int RealCluster::slow_syncs(std::size_t index) const {
  const auto log = file_text(log_of(fmt::format("n{}", index + 1)));
  constexpr std::string_view kLine = "a sync takes long";
  int count = 0;
  for (auto at = log.find(kLine); at != std::string::npos; at = log.find(kLine, at + 1)) {
    ++count;
  }
  return count;
}

std::string RealCluster::node_url(std::size_t index) const {
  return fmt::format("{}://127.0.0.1:{}", options_.tls ? "https" : "http", ports_[index]);
}

std::string RealCluster::controller_url(Which which) const {
  return fmt::format("{}://127.0.0.1:{}", options_.tls ? "https" : "http", port_of(which));
}

std::string RealCluster::agent_url(std::size_t index) const {
  return fmt::format("{}://127.0.0.1:{}", options_.tls ? "https" : "http",
                     ports_[2 * kNodes + index]);
}

std::string RealCluster::program_of(const std::string& name) const {
  return programs_.empty() ? program(name) : (programs_ / name).string();
}

std::vector<std::string> RealCluster::node_command(std::size_t index) const {
  std::string seeds;
  for (std::size_t other = 0; other < kNodes; ++other) {
    if (other != index) {
      seeds += fmt::format("{}127.0.0.1:{}", seeds.empty() ? "" : ",", ports_[other]);
    }
  }
  std::vector<std::string> command{program_of("verger-agent"),
                                   "--role",
                                   options_.role,
                                   "--db",
                                   node_directory(index).string(),
                                   "--state",
                                   agent_state(index).string(),
                                   "--node-port",
                                   std::to_string(ports_[index]),
                                   "--replication-port",
                                   std::to_string(ports_[kNodes + index]),
                                   "--agent-port",
                                   std::to_string(ports_[2 * kNodes + index]),
                                   "--end-after-seconds",
                                   std::to_string(options_.life.count())};
  if (options_.config_files) {
    const auto file = config_file(index);
    command.insert(command.end(), {"--config", file.string()});
    if (!std::filesystem::exists(file)) {
      std::ofstream(file) << fmt::format("ClusterSize: {}  # voters\nGossipSeed: {}\n", kNodes,
                                         seeds);
    }
  } else {
    command.insert(command.end(),
                   {"--cluster-size", std::to_string(kNodes), "--gossip-seed", seeds});
  }
  if (options_.role != "node") {
    const auto controller = controller_of_agent(index);
    command.insert(command.end(), controller.begin(), controller.end());
    const auto backups = backups_of_agent(index);
    command.insert(command.end(), backups.begin(), backups.end());
  }
  if (options_.fast) {
    command.insert(command.end(), {"--max-mem-table-size", "200", "--stream-existence-filter-size",
                                   "10000", "--agent-poll-interval-ms", "50", "--fast-timings"});
  }
  if (options_.mishaps) {
    command.insert(command.end(), {"--detours", links_->detours_of(index), "--slow-disk",
                                   slowness_of(index).string()});
  }
  if (options_.atom) {
    command.emplace_back("--enable-atom-pub-over-http");
  }
  if (options_.tls) {
    const auto files = certificates_of(index);
    // A handshake on a starved machine takes longer than fast timings give a whole message.
    command.insert(command.end(),
                   {"--gossip-timeout-ms", "2000", "--leader-election-timeout-ms", "500"});
    command.insert(command.end(), {"--certificate-file", (files / "node.crt").string(),
                                   "--certificate-private-key-file", (files / "node.key").string(),
                                   "--trusted-root-certificates-path", (files / "roots").string()});
  }
  for (auto argument : options_.agent_arguments) {
    if (const auto at = argument.find("{node}"); at != std::string::npos) {
      argument.replace(at, std::string_view("{node}").size(),
                       node_directory(index).parent_path().string());
    }
    command.push_back(std::move(argument));
  }
  return command;
}

std::vector<std::string> RealCluster::agent_command(std::size_t index) const {
  std::vector<std::string> command{program_of("verger-agent"),
                                   "--role",
                                   "agent",
                                   "--node",
                                   node_url(index),
                                   "--db",
                                   node_directory(index).string(),
                                   "--state",
                                   agent_state(index).string(),
                                   "--agent-port",
                                   std::to_string(ports_[2 * kNodes + index]),
                                   "--end-after-seconds",
                                   std::to_string(options_.life.count())};
  const auto controller = controller_of_agent(index);
  command.insert(command.end(), controller.begin(), controller.end());
  const auto backups = backups_of_agent(index);
  command.insert(command.end(), backups.begin(), backups.end());
  if (options_.fast) {
    command.insert(command.end(), {"--agent-poll-interval-ms", "50"});
  }
  if (options_.config_files) {
    command.insert(command.end(), {"--server-config", config_file(index).string()});
  }
  if (options_.services) {
    command.insert(command.end(), {"--start-command", "/bin/sh " + script(index, "start").string(),
                                   "--stop-command", "/bin/sh " + script(index, "stop").string()});
  }
  if (options_.tls) {
    const auto files = certificates_of(index);
    const auto roots = (files / "roots").string();
    command.insert(
        command.end(),
        {"--certificate-file", (files / "node.crt").string(), "--trusted-root-certificates-path",
         roots, "--certificate-private-key-file", (files / "node.key").string(),
         "--credentials-file", (controller_directory() / "credentials" / "orders").string()});
  }
  return command;
}

std::vector<std::string> RealCluster::controller_command(Which which) const {
  std::vector<std::string> command{program_of("vergerd"),
                                   "--data",
                                   controller_directory(which).string(),
                                   "--port",
                                   std::to_string(port_of(which)),
                                   "--end-after-seconds",
                                   std::to_string(options_.life.count())};
  if (options_.fast) {
    command.insert(command.end(), {"--poll-interval-ms", "50", "--request-deadline-ms", "3000",
                                   "--permit-valid-ms", "3000", "--leader-hold-ms", "300",
                                   "--election-settle-ms", "300"});
  }
  if (!options_.tls) {
    command.insert(command.end(), {"--agents-token-file", agents_token().string()});
  }
  if (!options_.journal_etcd.empty()) {
    command.insert(command.end(),
                   {"--journal-etcd", options_.journal_etcd, "--journal-etcd-lease-seconds", "4"});
  }
  if (options_.tls) {
    const auto own = directory_.path() / "vergerd";
    const auto api = (directory_.path() / "api").string();
    command.insert(command.end(), {"--ca", accepted_roots().string(), "--certificate-file",
                                   own.string() + ".crt", "--certificate-private-key-file",
                                   own.string() + ".key", "--api-certificate-file", api + ".crt",
                                   "--api-certificate-private-key-file", api + ".key"});
  }
  return command;
}

void RealCluster::start_node(std::size_t index, const Environment& environment) {
  if (options_.services) {
    write_scripts(index);
    run({"/bin/sh", script(index, "start").string()}, environment);
    return;
  }
  nodes_.at(index).emplace(Process::Options{.command = node_command(index),
                                            .environment = environment,
                                            .output = log_of(fmt::format("n{}", index + 1))});
}

void RealCluster::start_agent(std::size_t index, const Environment& environment) {
  agents_.at(index).emplace(Process::Options{.command = agent_command(index),
                                             .environment = environment,
                                             .output = log_of(fmt::format("a{}", index + 1))});
}

void RealCluster::start_controller(const Environment& environment) {
  controller_.emplace(Process::Options{.command = controller_command(Which::kFirst),
                                       .environment = environment,
                                       .output = log_of("controller")});
}

std::string RealCluster::log_of_controller(Which which) const {
  return file_text(log_of(which == Which::kFirst ? "controller" : "second"));
}

void RealCluster::start_second_controller() {
  second_.emplace(Process::Options{.command = controller_command(Which::kSecond),
                                   .environment = {},
                                   .output = log_of("second")});
}

void RealCluster::start_all(const Environment& of_nodes) {
  for (std::size_t i = 0; i < kNodes; ++i) {
    start_node(i, of_nodes);
    if (options_.separate_agents) {
      start_agent(i);
    }
  }
  start_controller();
}

void RealCluster::boot() {
  for (std::size_t i = 0; i < kNodes; ++i) {
    if (!std::filesystem::exists(agent_state(i) / "server-kept-stopped")) {
      run({"/bin/sh", script(i, "start").string()});
    }
    start_agent(i);
  }
  start_controller();
}

int RealCluster::restart_dead() {
  int restarted = 0;
  for (std::size_t i = 0; i < kNodes; ++i) {
    if (nodes_[i] && !nodes_[i]->running()) {
      start_node(i);
      ++restarted;
    }
    if (agents_[i] && !agents_[i]->running()) {
      start_agent(i);
      ++restarted;
    }
  }
  if (controller_ && !controller_->running()) {
    start_controller();
    ++restarted;
  }
  return restarted;
}

std::string RealCluster::logs() const {
  std::string text;
  for (const auto* name : {"controller", "second", "n1", "n2", "n3", "a1", "a2", "a3"}) {
    const auto log = file_text(log_of(name));
    if (log.empty()) {
      continue;
    }
    text += fmt::format("\n--- {}\n{}", name,
                        log.substr(log.size() > kLogTail ? log.size() - kLogTail : 0));
  }
  return text;
}

}  // namespace verger::test
