#include "tests/simulation/full/cluster.h"

#include <fmt/format.h>
#include <utility>

#include "engine/base/slow_file_system.h"
#include "nodeagent/node/node.h"
#include "nodeagent/operations/agent.h"
#include "tests/support/controller/fixed_bootstrap_token.h"

namespace verger::sim {

using std::chrono::milliseconds;

namespace {

/// Long work takes time here: after each small step others get their turn, and faults a chance. In
/// a real program jobs have a thread of their own, so that a slow disk holds up the job alone.
class PacedJobRunner final : public node::JobRunner {
 public:
  explicit PacedJobRunner(http::Timers& timers) : timers_(timers) {}

  [[nodiscard]] bool stepping() const { return stepping_; }
  /// The step that is under way takes so much longer.
  void hold_up(milliseconds by) { held_up_ += by; }

  net::awaitable<Result<void>> run(std::shared_ptr<Job> job,
                                   std::shared_ptr<const node::StopFlag> stop) override {
    for (;;) {
      if (stop && stop->requested()) {
        co_return Error{Errc::kCancelled, "stopped"};
      }
      stepping_ = true;
      auto outcome = job->step(Budget{.units = kUnits});
      stepping_ = false;
      if (const auto wait = std::exchange(held_up_, milliseconds(0)); wait.count() > 0) {
        co_await timers_.sleep_for(wait);
      }
      if (!outcome) {
        co_return outcome.error();
      }
      if (outcome->kind == StepOutcome::Kind::kDone) {
        co_return Result<void>{};
      }
      co_await timers_.sleep_for(outcome->kind == StepOutcome::Kind::kRest ? outcome->rest
                                                                           : milliseconds(kPause));
    }
  }

 private:
  static constexpr std::uint32_t kUnits = 16;
  static constexpr int kPause = 5;
  http::Timers& timers_;
  bool stepping_ = false;
  milliseconds held_up_{0};
};

node::NodeTimings timings() {
  // Slower than in tests of real processes: gossip is most of the work of a run.
  auto timings = node::NodeTimings::fast();
  timings.tick = milliseconds(50);
  timings.gossip_interval = milliseconds(500);
  timings.gossip_timeout = milliseconds(600);
  timings.discover_leader = milliseconds(200);
  timings.election_timeout = milliseconds(250);
  timings.heartbeat_interval = milliseconds(150);
  timings.heartbeat_timeout = milliseconds(500);
  timings.quorum_loss_wait = milliseconds(600);
  timings.reconnect_delay = milliseconds(50);
  return timings;
}

constexpr milliseconds kRestart{300};

/// A number that differs when a file's name or content does.
std::size_t content_of(FileSystem& disk, const Path& directory) {
  std::size_t all = 0;
  const auto entries = disk.list(directory);
  for (const auto& entry : entries ? *entries : std::vector<DirectoryEntry>()) {
    const auto path = directory / entry.name;
    std::size_t one = 0;
    if (entry.is_directory) {
      one = content_of(disk, path);
    } else if (const auto bytes = read_file(disk, path)) {
      one = std::hash<std::string_view>()(as_text(*bytes));
    }
    all += std::hash<std::string>()(path.string()) ^ (one * 31);
  }
  return all;
}

}  // namespace

http::Endpoint endpoint(std::string_view host, std::uint16_t port) {
  return {.tls = false, .host = std::string(host), .port = port};
}

/// What a process refers to; outlives everything that runs in it.
struct Cluster::NodeProgram {
  NodeProgram(testing::SimHost& host, std::uint64_t seed, Trace& trace,
              std::function<void()> before_sync, OnlineWork& work)
      : random(seed),
        disk(host.disk(), std::move(before_sync)),
        jobs(host.timers()),
        log(trace, host.clock(), host.name()),
        online(
            host.name(), {host.disk(), host.clock(), random, log}, host.timers(),
            [this]() -> std::shared_ptr<node::Core> {
              const auto parts = owned.lock();
              return parts && parts->node ? parts->node->core() : nullptr;
            },
            work) {}
  SeededRandom random;
  SlowFileSystem disk;
  PacedJobRunner jobs;
  TraceLog log;
  /// What the process owns, gone with it.
  struct Owned {
    std::unique_ptr<node::Node> node;
    std::shared_ptr<agent::Agent> agent;
  };
  std::weak_ptr<Owned> owned;
  SimOnlineAccess online;
};

struct Cluster::ControllerProgram {
  ControllerProgram(testing::SimHost& host, std::uint64_t seed, Trace& trace)
      : random(seed), log(trace, host.clock(), host.name()) {}
  SeededRandom random;
  TraceLog log;
  std::weak_ptr<controller::Controller> controller;
};

struct Cluster::Machine {
  testing::SimHost& host;
  int boots = 0;
  /// Counts ends, so that a start that was meant for an earlier one is left out.
  int ends = 0;
  milliseconds longest_sync{0};
  std::unique_ptr<NodeProgram> node;
  std::unique_ptr<ControllerProgram> controller;
};

Cluster::Cluster(testing::SimWorld& world, ClusterOptions options, Trace& trace)
    : world_(world), options_(std::move(options)), trace_(trace) {
  const auto add = [this](std::string_view name) -> testing::SimHost& {
    auto& host = world_.add_host(std::string(name));
    machines_.emplace(name, std::make_unique<Machine>(host));
    return host;
  };
  for (const auto name : kNodes) {
    add(name).set_disk(base_disk(options_.start).clone());
  }
  add(kController);
  add(kPerson);
  add(kWriter);
  add(kMeddler);
}

Cluster::~Cluster() {
  // Processes end before what they refer to.
  for (auto& [name, machine] : machines_) {
    if (machine->host.up()) {
      machine->host.crash(/*power=*/false);
    }
  }
}

Cluster::Machine& Cluster::machine(std::string_view host) const {
  return *machines_.find(host)->second;
}

void Cluster::start() {
  for (auto& [name, machine] : machines_) {
    boot(*machine);
  }
}

void Cluster::boot(Machine& machine) {
  if (machine.host.up()) {
    return;
  }
  const auto& name = machine.host.name();
  machine.host.boot();
  ++machine.boots;
  Result<void> booted;
  if (name == kController) {
    booted = boot_controller(machine);
  } else if (name != kPerson && name != kWriter && name != kMeddler) {
    booted = boot_node(machine);
  }
  if (machine.host.up() && !machine.host.dying()) {
    if (booted) {
      trace_.add(world_.now(), name, "started");
      return;
    }
    ++failed_starts;
    last_failed_start = fmt::format("{}: {}", name, booted.error().message);
    trace_.add(world_.now(), name, "did not start: " + booted.error().message);
    crash(name, Power::kStays, kRestart);
  }
}

Result<void> Cluster::open_agent(testing::SimHost& host, NodeProgram& program) {
  agent::AgentOptions agent;
  agent.journal = "/agent/journal.db";
  agent.node = endpoint(host.name(), kNodePort);
  agent.credentials = std::make_shared<const client::Credentials>("admin", "changeit");
  agent.request_deadline = milliseconds(2000);
  agent.poll_interval = milliseconds(100);
  const auto owned = program.owned.lock();
  VERGER_TRY(owned->agent,
             agent::Agent::open(std::move(agent),
                                {.executor = host.executor(),
                                 .files = program.disk,
                                 .clock = host.clock(),
                                 .timers = host.timers(),
                                 .client = host.client(),
                                 .jobs = program.jobs,
                                 .log = program.log,
                                 .inspection = [weak = program.owned]() -> node::NodeInspection* {
                                   const auto parts = weak.lock();
                                   return parts && parts->node ? &parts->node->inspection()
                                                               : nullptr;
                                 },
                                 .online = &program.online}));
  host.serve_http(kAgentPort, owned->agent->handler());
  return {};
}

Result<void> Cluster::boot_node(Machine& machine) {
  auto& host = machine.host;
  const auto& name = host.name();
  machine.node = std::make_unique<NodeProgram>(
      host,
      options_.seed * 1000 + static_cast<std::uint64_t>(machine.boots) * 10 +
          static_cast<std::uint64_t>(name.back() - '0'),
      trace_, [this, &machine] { before_sync(machine); }, online);
  auto& program = *machine.node;
  auto owned = std::make_shared<NodeProgram::Owned>();
  program.owned = owned;
  host.keep(owned);

  node::NodeOptions node;
  node.database = "/db";
  node.cluster_size = static_cast<int>(kNodes.size());
  for (const auto peer : kNodes) {
    if (peer != name) {
      node.gossip_seeds.push_back(endpoint(peer, kNodePort));
    }
  }
  node.max_mem_table_size = 40;
  node.stream_existence_filter_size = 10'000;
  node.assume_stopped = true;
  node.enable_atom_pub = true;
  node.scavenge_backend_page_size = 4096;
  // As the program shows it; agents beside the node read it there.
  node.effective.push_back({.name = "ScavengeBackendPageSize", .value = "4096"});
  node.scavenge_backend_cache_size = 256 * 1024;
  node.scavenge_hash_users_cache_capacity = 1000;
  node.timings = timings();
  VERGER_TRY(owned->node,
             node::Node::open(
                 std::move(node),
                 {.executor = host.executor(),
                  .files = program.disk,
                  .clock = host.clock(),
                  .random = program.random,
                  .timers = host.timers(),
                  .client = host.client(),
                  .frames = host.frames(),
                  .jobs = program.jobs,
                  .log = program.log,
                  .on_shutdown = [this, name] { end_from_inside(name, "shut down"); },
                  .on_failure =
                      [this, name](const Error& error) { end_from_inside(name, error.message); }}));

  VERGER_RETURN_IF_ERROR(open_agent(host, program));
  host.serve_http(kNodePort, owned->node->http_handler());
  host.serve_frames(kReplicationPort, owned->node->frame_handler());
  owned->node->start(
      {.http = endpoint(name, kNodePort), .replication = endpoint(name, kReplicationPort)});
  owned->agent->start();
  return {};
}

bool Cluster::stop_agent(std::string_view name, milliseconds pause) {
  auto& machine = this->machine(name);
  const auto owned = machine.host.up() && !machine.host.dying() && machine.node
                         ? machine.node->owned.lock()
                         : nullptr;
  if (!owned || !owned->agent) {
    return false;
  }
  trace_.add(world_.now(), name, "its agent stops");
  machine.host.spawn([](std::shared_ptr<agent::Agent> agent) -> net::awaitable<void> {
    co_await agent->stop();
  }(std::exchange(owned->agent, nullptr)));
  world_.schedule(pause, [this, &machine, boots = machine.boots] {
    if (machine.boots == boots) {
      boot_agent(machine);
    }
  });
  return true;
}

void Cluster::boot_agent(Machine& machine) {
  const auto owned = machine.host.up() && !machine.host.dying() && machine.node
                         ? machine.node->owned.lock()
                         : nullptr;
  if (!owned || owned->agent) {
    return;
  }
  if (const auto opened = open_agent(machine.host, *machine.node); !opened) {
    trace_.add(world_.now(), machine.host.name(),
               "its agent did not start: " + opened.error().message);
    world_.schedule(kRestart, [this, &machine, boots = machine.boots] {
      if (machine.boots == boots) {
        boot_agent(machine);
      }
    });
    return;
  }
  trace_.add(world_.now(), machine.host.name(), "its agent started");
  owned->agent->start();
}

Result<void> Cluster::boot_controller(Machine& machine) {
  auto& host = machine.host;
  machine.controller = std::make_unique<ControllerProgram>(
      host, options_.seed * 1000 + 500 + static_cast<std::uint64_t>(machine.boots), trace_);
  auto& program = *machine.controller;
  controller::ControllerOptions options;
  options.data_directory = "/vergerd";
  options.credentials_directory = "/credentials";
  options.request_deadline = milliseconds(1500);
  options.executor = options_.executor;
  options.policy = options_.policy;
  VERGER_TRY(auto opened,
             controller::Controller::open(std::move(options),
                                          {.executor = host.executor(),
                                           .files = host.disk(),
                                           .clock = host.clock(),
                                           .random = program.random,
                                           .timers = host.timers(),
                                           .client = host.client(),
                                           .log = program.log,
                                           .bootstrap = &test::FixedBootstrapToken::shared()}));
  std::shared_ptr<controller::Controller> controller = std::move(opened);
  program.controller = controller;
  host.keep(controller);
  if (on_controller) {
    on_controller(*controller);
  }
  // The person sits at the controller's machine: no token has been created.
  host.serve_http(kControllerPort, [handler = controller->handler()](http::Request request) {
    test::FixedBootstrapToken::sign(request);
    return handler(std::move(request));
  });
  return controller->start();
}

void Cluster::boot_later(Machine& machine, milliseconds pause) {
  const int ends = ++machine.ends;
  world_.schedule(pause, [this, &machine, ends] {
    if (machine.ends == ends) {
      boot(machine);
    }
  });
}

void Cluster::end_from_inside(const std::string& host, std::string reason) {
  trace_.add(world_.now(), host, "ends: " + reason);
  auto& ended = machine(host);
  if (ended.host.up() && !ended.host.dying()) {
    ended.host.die(/*power=*/false);
    boot_later(ended, kRestart);
  }
}

bool Cluster::crash(std::string_view host, Power power, milliseconds pause) {
  auto& crashed = machine(host);
  if (!crashed.host.up() || crashed.host.dying()) {
    return false;
  }
  std::optional<std::uint64_t> torn;
  if (power == Power::kTorn) {
    torn = world_.random().next();
  }
  const auto before = power == Power::kStays ? 0 : content_of(crashed.host.disk(), "/");
  // The same from inside and outside: a process that ends does no more.
  crashed.host.die(power != Power::kStays, torn);
  if (power != Power::kStays && content_of(crashed.host.disk(), "/") != before) {
    ++power_cuts_with_loss;
  }
  boot_later(crashed, pause);
  return true;
}

void Cluster::slow_disk(std::string_view name, milliseconds longest_sync) {
  machine(name).longest_sync = longest_sync;
}

void Cluster::before_sync(Machine& machine) {
  const auto longest = static_cast<std::uint64_t>(machine.longest_sync.count());
  const milliseconds takes(longest == 0 ? 0 : world_.random().below(longest + 1));
  if (takes.count() == 0 || machine.host.dying()) {
    return;
  }
  ++slow_syncs;
  if (auto& jobs = machine.node->jobs; jobs.stepping()) {
    ++slow_syncs_of_jobs;
    jobs.hold_up(takes);
  } else {
    machine.host.stay_busy(takes);
  }
}

void Cluster::start_what_is_down() {
  for (auto& [name, machine] : machines_) {
    if (!machine->host.up()) {
      ++machine->ends;
      boot(*machine);
    }
    boot_agent(*machine);
  }
}

node::NodeInspection* Cluster::node(std::string_view host) const {
  const auto& found = machine(host);
  if (!found.host.up() || found.host.dying() || !found.node) {
    return nullptr;
  }
  const auto owned = found.node->owned.lock();
  return owned && owned->node ? &owned->node->inspection() : nullptr;
}

controller::Controller* Cluster::controller() const {
  const auto& found = machine(kController);
  if (!found.host.up() || found.host.dying() || !found.controller) {
    return nullptr;
  }
  return found.controller->controller.lock().get();
}

bool Cluster::everything_is_up() const {
  return controller() != nullptr && std::ranges::all_of(kNodes, [this](std::string_view name) {
           return node(name) != nullptr;
         });
}

int Cluster::boots(std::string_view host) const { return machine(host).boots; }

}  // namespace verger::sim
