#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/daemon/controller.h"
#include "nodeagent/http/tls.h"
#include "nodeagent/operations/agent.h"
#include "tests/simulation/control/ailments.h"
#include "tests/simulation/control/memory_journal.h"
#include "tests/simulation/control/memory_operations.h"
#include "tests/simulation/control/model.h"
#include "tests/simulation/full/trace.h"
#include "tests/support/cluster/sim_world.h"

namespace verger::sim {

inline constexpr std::uint16_t kModelAgentPort = 2114;
inline constexpr std::uint16_t kModelControllerPort = 2115;

struct SiteOptions {
  std::uint64_t seed = 1;
  ModelOptions model{};
  bool agents = true;
  /// Real journals, on disks in memory, that a power cut goes through. Then there is no second
  /// controller: a pair shares a server for its journal.
  bool sqlite = false;
  bool second_controller = false;
  bool tls = false;  ///< addresses are of https, with certificates that end
  controller::ExecutorOptions executor{};
  planner::Policy policy{};
  /// A run of it asks the leader to resign.
  [[nodiscard]] bool may_resign() const {
    return scavenge_of(policy).strategy != planner::Strategy::kFollowersOnly &&
           scavenge_of(policy).leader == planner::LeaderRule::kResign;
  }
};

/// The programs, each a process on its machine: nodes "n1"... (models), their agents "a1"... beside
/// them, the controllers "c" and "d", and "p" for a person, which never fails.
class Site {
 public:
  Site(testing::SimWorld& world, SiteOptions options, Trace& trace);
  ~Site();

  /// Starts all but the second controller.
  void start();
  /// The process ends now and starts again after `pause`; false: it was not up. From outside or
  /// inside of it. With `power`, all processes of its machine lose it, but only this one is gone.
  bool crash(std::string_view host, bool power, std::chrono::milliseconds pause);
  void start_what_is_down();
  /// The second controller takes over, or the first one again.
  bool switch_controllers();

  [[nodiscard]] controller::Controller* controller(std::string_view host) const;
  /// Whose epoch is the newest.
  [[nodiscard]] controller::Controller* acting_controller() const;
  /// Its host; of the first one while none acts.
  [[nodiscard]] std::string acting_host() const;
  [[nodiscard]] std::vector<std::string> controllers() const;
  [[nodiscard]] std::vector<std::string> agents() const;
  [[nodiscard]] std::vector<std::string> programs() const;
  [[nodiscard]] bool everything_is_up() const;
  static std::string agent_of(std::string_view node);
  [[nodiscard]] bool has_agents() const { return options_.agents; }
  [[nodiscard]] const SiteOptions& options() const { return options_; }

  testing::SimWorld& world() { return world_; }
  ModelCluster& model() { return model_; }
  Trace& trace() { return trace_; }
  Ailments& ailments() { return ailments_; }
  /// So far from the right time are the clocks of this node and of the controller from each other.
  [[nodiscard]] std::chrono::milliseconds clocks_differ(std::string_view node);

  /// Called for each write of a journal (not of SQLite's).
  std::function<WriteFate(const std::string& host, bool written)> write_fate;
  std::function<void(const controller::JournalEvent&)> on_journal;
  /// An agent stored what it knows of an operation.
  std::function<void(const std::string& node, const agent::OperationRecord&)> on_operation;
  /// A program's process is about to be ended, from outside or at a failpoint.
  std::function<void(const std::string& host)> on_crash;
  std::uint64_t failed_starts = 0;

 private:
  struct Machine;
  class PrintedLog;
  void boot(Machine& machine);
  Result<void> boot_agent(Machine& machine);
  Result<void> boot_controller(Machine& machine);
  void tell_facts(const std::string& node, api::AgentFacts& facts);
  static net::awaitable<Result<http::CertificateInfo>> certificate_at(Site& site,
                                                                      http::Endpoint of);
  WriteFates fates_of(const std::string& host);
  void tell_journal(Machine& machine);
  Machine& machine(std::string_view host) const;

  testing::SimWorld& world_;
  SiteOptions options_;
  Trace& trace_;
  ModelCluster model_;
  Ailments ailments_;
  std::shared_ptr<JournalStore> store_ = std::make_shared<JournalStore>();
  controller::Sequence reported_{0};
  std::map<std::string, std::unique_ptr<Machine>, std::less<>> machines_;
};

}  // namespace verger::sim
