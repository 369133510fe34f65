#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "controller/daemon/controller.h"
#include "nodeagent/node/inspection.h"
#include "tests/simulation/full/base_disk.h"
#include "tests/simulation/full/online.h"
#include "tests/simulation/full/trace.h"
#include "tests/support/cluster/sim_world.h"

namespace verger::sim {

/// The machines: three with an embedded node and its agent in one process, the controller's, and
/// three that never fail: a person's, a writer's, and that of one who meddles.
inline constexpr std::array<std::string_view, 3> kNodes = {"n1", "n2", "n3"};
inline constexpr std::string_view kController = "c";
inline constexpr std::string_view kPerson = "p";
inline constexpr std::string_view kWriter = "w";
inline constexpr std::string_view kMeddler = "f";
inline constexpr std::string_view kClusterName = "sim";

inline constexpr std::uint16_t kNodePort = 2113;
inline constexpr std::uint16_t kReplicationPort = 1112;
inline constexpr std::uint16_t kAgentPort = 2114;
inline constexpr std::uint16_t kControllerPort = 2115;
http::Endpoint endpoint(std::string_view host, std::uint16_t port);

/// What the end of a process leaves of what was not synced.
enum class Power : std::uint8_t {
  kStays,  ///< everything written
  kCut,    ///< nothing of it
  kTorn,   ///< each write by chance, or half of it
};

struct ClusterOptions {
  StartingPoint start = StartingPoint::kNeverScavenged;
  std::uint64_t seed = 1;
  controller::ExecutorOptions executor;
  planner::Policy policy;
};

/// Starts the real programs on simulated machines, and starts them again after they ended, as the
/// service manager of a machine does.
class Cluster {
 public:
  Cluster(testing::SimWorld& world, ClusterOptions options, Trace& trace);
  ~Cluster();

  /// Switches all machines on.
  void start();
  /// The process on `host` ends now; the next one starts after `pause`. From outside of the
  /// process, or (at a failpoint, in a disk operation) from inside it. False: it was not up.
  bool crash(std::string_view host, Power power, std::chrono::milliseconds pause);
  /// The agent alone stops, the node beside it continues; it starts again after `pause`. False: it
  /// was not there. From outside of the process.
  bool stop_agent(std::string_view host, std::chrono::milliseconds pause);
  /// From now on a sync on the disk of the node `host` takes up to this long; 0: no time. It blocks
  /// the process, or, where a job of the node's does it, the job.
  void slow_disk(std::string_view host, std::chrono::milliseconds longest_sync);
  /// All that is down starts now.
  void start_what_is_down();

  /// nullptr while the process, or the node in it, is down.
  [[nodiscard]] node::NodeInspection* node(std::string_view host) const;
  [[nodiscard]] controller::Controller* controller() const;
  [[nodiscard]] bool everything_is_up() const;
  /// How often the program on `host` was started.
  [[nodiscard]] int boots(std::string_view host) const;
  /// Called after each start of the controller, before it does anything.
  std::function<void(controller::Controller&)> on_controller;

  testing::SimWorld& world() { return world_; }
  Trace& trace() { return trace_; }
  /// Of agents beside their nodes, where the policy has them switch chunks.
  OnlineWork online;
  /// Starts that failed, with the last reason.
  int failed_starts = 0;
  std::string last_failed_start;
  /// Power cuts after which the disk was not what it had been.
  std::uint64_t power_cuts_with_loss = 0;
  /// Syncs that took time, of processes and of jobs.
  std::uint64_t slow_syncs = 0;
  std::uint64_t slow_syncs_of_jobs = 0;

 private:
  struct Machine;
  struct NodeProgram;
  struct ControllerProgram;

  void boot(Machine& machine);
  Result<void> boot_node(Machine& machine);
  static Result<void> open_agent(testing::SimHost& host, NodeProgram& program);
  /// On a journal that an agent still ends with, later again.
  void boot_agent(Machine& machine);
  Result<void> boot_controller(Machine& machine);
  void before_sync(Machine& machine);
  void boot_later(Machine& machine, std::chrono::milliseconds pause);
  void end_from_inside(const std::string& host, std::string reason);
  Machine& machine(std::string_view host) const;

  testing::SimWorld& world_;
  ClusterOptions options_;
  Trace& trace_;
  std::map<std::string, std::unique_ptr<Machine>, std::less<>> machines_;
};

}  // namespace verger::sim
