#include "tests/simulation/control/site.h"

#include <algorithm>
#include <fmt/format.h>

#include "nodeagent/node/job_runner.h"
#include "tests/support/controller/fixed_bootstrap_token.h"

namespace verger::sim {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kRestart{500};

enum class Kind : std::uint8_t { kNode, kAgent, kController, kPerson };

}  // namespace

/// Only for a reader: making texts of everything takes longer than the rest.
class Site::PrintedLog final : public Log {
 public:
  PrintedLog(Trace& trace, Clock& clock, std::string who)
      : trace_(trace), clock_(clock), who_(std::move(who)) {}
  void write(LogLevel /*level*/, std::string_view message,
             std::span<const LogField> fields) override {
    if (!trace_.printing()) {
      return;
    }
    std::string text(message);
    for (const auto& field : fields) {
      text += fmt::format(" {}={}", field.name, field.value);
    }
    trace_.note(clock_.monotonic(), who_, text);
  }

 private:
  Trace& trace_;
  Clock& clock_;
  std::string who_;
};

struct Site::Machine {
  testing::SimHost& host;
  Kind kind;
  std::uint64_t number = 0;
  int boots = 0;
  int ends = 0;
  std::shared_ptr<OperationStore> operations = std::make_shared<OperationStore>();
  // Of the present process; outlives it.
  struct Program {
    Program(testing::SimHost& on, std::uint64_t seed, Trace& trace)
        : random(seed), jobs(on.timers()), log(trace, on.clock(), on.name()) {}
    SeededRandom random;
    node::InlineJobRunner jobs;
    PrintedLog log;
  };
  std::unique_ptr<Program> program;
  std::weak_ptr<controller::Controller> controller;
  controller::Journal::Subscription subscription;
};

Site::Site(testing::SimWorld& world, SiteOptions options, Trace& trace)
    : world_(world),
      options_(std::move(options)),
      trace_(trace),
      model_(world, options_.model, options_.seed + 17) {
  const auto add = [this](const std::string& name, Kind kind) -> testing::SimHost& {
    auto& host = world_.add_host(name);
    machines_.emplace(name, std::make_unique<Machine>(host, kind, std::uint64_t{machines_.size()}));
    return host;
  };
  for (const auto& node : model_.hosts()) {
    add(node, Kind::kNode);
    if (options_.agents) {
      add(agent_of(node), Kind::kAgent).machine = node;
    }
  }
  add("c", Kind::kController);
  if (options_.second_controller) {
    add("d", Kind::kController);
  }
  add("p", Kind::kPerson);
  store_->on_event = [this](const controller::JournalEvent& event) {
    if (on_journal) {
      on_journal(event);
    }
  };
}

Site::~Site() {
  on_crash = nullptr;
  model_.on_gone = nullptr;
  on_operation = nullptr;
  on_journal = nullptr;
  for (auto& [name, machine] : machines_) {
    if (machine->host.up()) {
      machine->host.crash(/*power=*/false);
    }
  }
}

std::string Site::agent_of(std::string_view node) { return "a" + std::string(node.substr(1)); }

Site::Machine& Site::machine(std::string_view host) const { return *machines_.find(host)->second; }

void Site::start() {
  model_.begin();
  for (auto& [name, machine] : machines_) {
    if (name != "d") {
      boot(*machine);
    }
  }
}

WriteFates Site::fates_of(const std::string& host) {
  return [this, host, &machine = machine(host).host](bool written) {
    if (!machine.up() || machine.dying()) {
      return WriteFate::kDead;
    }
    const auto fate = write_fate ? write_fate(host, written) : WriteFate::kDone;
    return machine.dying() ? WriteFate::kDead : fate;
  };
}

void Site::boot(Machine& machine) {
  if (machine.host.up()) {
    return;
  }
  auto& host = machine.host;
  host.boot();
  ++machine.boots;
  machine.program = std::make_unique<Machine::Program>(
      host, options_.seed * 1'000 + machine.number * 50 + static_cast<std::uint64_t>(machine.boots),
      trace_);
  Result<void> booted;
  switch (machine.kind) {
    case Kind::kNode: {
      auto node = model_.boot(host.name());
      host.serve_http(kModelNodePort, node->handler());
      host.keep(std::move(node));
      break;
    }
    case Kind::kAgent:
      booted = boot_agent(machine);
      break;
    case Kind::kController:
      booted = boot_controller(machine);
      break;
    case Kind::kPerson:
      break;
  }
  if (!host.up() || host.dying()) {
    return;
  }
  if (booted) {
    trace_.add(world_.now(), host.name(), "started");
    return;
  }
  ++failed_starts;
  trace_.add(world_.now(), host.name(), "did not start: " + booted.error().message);
  crash(host.name(), /*power=*/false, kRestart);
}

Result<void> Site::boot_agent(Machine& machine) {
  auto& host = machine.host;
  const auto node = host.machine;
  agent::AgentOptions options;
  options.journal = "/agent/journal.db";
  options.node = {.tls = false, .host = node, .port = kModelNodePort};
  options.credentials = std::make_shared<const client::Credentials>("admin", "changeit");
  options.request_deadline = milliseconds(2'000);
  options.poll_interval = milliseconds(3'000);
  agent::AgentEnvironment environment{
      .executor = host.executor(),
      .files = host.disk(),
      .clock = host.clock(),
      .timers = host.timers(),
      .client = host.client(),
      .jobs = machine.program->jobs,
      .log = machine.program->log,
      .inspection = [this, node]() -> node::NodeInspection* { return model_.node(node); },
      // As an agent beside a server of any version does.
      .complete_facts = [this, node](api::AgentFacts& facts) { tell_facts(node, facts); }};
  environment.open_journal = [this, &machine,
                              node]() -> Result<std::unique_ptr<agent::OperationJournal>> {
    auto& files = machine.host.disk();
    std::unique_ptr<agent::OperationJournal> journal;
    if (options_.sqlite) {
      VERGER_TRY(journal,
                 agent::OperationJournal::open(files, "/agent/journal.db", machine.host.clock()));
    } else {
      journal = open_memory_operations(machine.operations, machine.host.clock(),
                                       fates_of(machine.host.name()));
    }
    return watch_operations(std::move(journal), [this, node](const agent::OperationRecord& record) {
      if (on_operation) {
        on_operation(node, record);
      }
    });
  };
  VERGER_TRY(auto opened, agent::Agent::open(std::move(options), std::move(environment)));
  std::shared_ptr<agent::Agent> agent = std::move(opened);
  host.keep(agent);
  host.serve_http(kModelAgentPort, agent->handler());
  agent->start();
  return {};
}

void Site::tell_facts(const std::string& node, api::AgentFacts& facts) {
  constexpr std::int64_t kNextToNothing = 1'000;
  facts.node_version =
      ailments_.has(Ailment::kAgentLies, node) ? "23.10.1" : options_.model.version;
  if (ailments_.has(Ailment::kOldAgent, node)) {
    facts.agent_version = "0.0.3";
  }
  if (ailments_.has(Ailment::kLittleDisk, node)) {
    facts.disk_free_bytes = kNextToNothing;
  }
}

net::awaitable<Result<http::CertificateInfo>> Site::certificate_at(Site& site, http::Endpoint of) {
  const auto node = of.host[0] == 'a' ? "n" + of.host.substr(1) : of.host;
  const bool ends = site.ailments_.has(Ailment::kShortCertificate, node);
  const auto valid = ends ? std::chrono::minutes(10) : std::chrono::hours(24 * 365);
  http::CertificateInfo out;
  out.serial = "01";
  out.not_after = format_ticks(
      Ticks(site.world_.wall().value() +
            std::chrono::duration_cast<std::chrono::seconds>(valid).count() * kTicksPerSecond));
  co_return out;
}

milliseconds Site::clocks_differ(std::string_view node) {
  const auto there =
      has_agents() ? world_.host(agent_of(node)).clock_skew : milliseconds(0);  // else by gossip
  return std::chrono::abs(there - world_.host(acting_host()).clock_skew);
}

Result<void> Site::boot_controller(Machine& machine) {
  auto& host = machine.host;
  controller::ControllerOptions options;
  options.data_directory = "/vergerd";
  options.credentials_directory = "/credentials";
  options.request_deadline = milliseconds(3'000);
  options.scheduler_tick = milliseconds(5'000);
  options.executor = options_.executor;
  options.policy = options_.policy;
  controller::ControllerEnvironment environment{.executor = host.executor(),
                                                .files = host.disk(),
                                                .clock = host.clock(),
                                                .random = machine.program->random,
                                                .timers = host.timers(),
                                                .client = host.client(),
                                                .log = machine.program->log,
                                                .bootstrap = &test::FixedBootstrapToken::shared()};
  environment.served_certificate = [this](http::Endpoint of) {
    return certificate_at(*this, std::move(of));
  };
  if (!options_.sqlite) {
    environment.open_journal = [this, &machine]() -> Result<std::unique_ptr<controller::Journal>> {
      return open_memory_journal(store_, machine.host.clock(), fates_of(machine.host.name()));
    };
  }
  VERGER_TRY(auto opened, controller::Controller::open(std::move(options), std::move(environment)));
  std::shared_ptr<controller::Controller> controller = std::move(opened);
  machine.controller = controller;
  host.keep(controller);
  if (options_.sqlite) {
    machine.subscription = controller->journal().subscribe(
        [this, &machine](controller::Sequence /*last*/) { tell_journal(machine); });
  }
  // The person sits at the controller's machine: no token has been created.
  host.serve_http(kModelControllerPort, [handler = controller->handler()](http::Request request) {
    test::FixedBootstrapToken::sign(request);
    return handler(std::move(request));
  });
  return controller->start();
}

void Site::tell_journal(Machine& machine) {
  const auto controller = machine.controller.lock();
  const auto news =
      controller ? controller->journal().read_all(reported_)
                 : Result<std::vector<controller::JournalEvent>>(Error{Errc::kUnavailable, "gone"});
  if (!news) {
    return;
  }
  for (const auto& event : *news) {
    reported_ = event.sequence;
    if (on_journal) {
      on_journal(event);
    }
  }
}

bool Site::crash(std::string_view name, bool power, milliseconds pause) {
  auto& ended = machine(name);
  if (!ended.host.up() || ended.host.dying()) {
    return false;
  }
  if (on_crash) {
    on_crash(ended.host.name());
  }
  ended.host.die(power);
  if (power && ended.kind == Kind::kNode) {
    model_.power_cut(name);
  }
  const int ends = ++ended.ends;
  world_.schedule(pause, [this, &ended, ends] {
    if (ended.ends == ends) {
      boot(ended);
    }
  });
  return true;
}

void Site::start_what_is_down() {
  for (auto& [name, machine] : machines_) {
    if (!machine->host.up() && name != "d") {
      ++machine->ends;
      boot(*machine);
    }
  }
}

bool Site::switch_controllers() {
  if (!options_.second_controller) {
    return false;
  }
  // The one that starts takes over; the other one lives on until it notices.
  const auto* acting = acting_controller();
  const std::string next = acting != nullptr && acting == controller("d") ? "c" : "d";
  auto& machine = this->machine(next);
  if (machine.host.up()) {
    if (machine.host.dying()) {
      return false;
    }
    ++machine.ends;
    if (on_crash) {
      on_crash(next);
    }
    machine.host.die(/*power=*/false);
    const int ends = machine.ends;
    world_.schedule(milliseconds(50), [this, &machine, ends] {
      if (machine.ends == ends) {
        boot(machine);
      }
    });
    return true;
  }
  ++machine.ends;
  boot(machine);
  return true;
}

controller::Controller* Site::controller(std::string_view name) const {
  const auto found = machines_.find(name);
  if (found == machines_.end() || !found->second->host.up() || found->second->host.dying()) {
    return nullptr;
  }
  return found->second->controller.lock().get();
}

controller::Controller* Site::acting_controller() const {
  controller::Controller* newest = nullptr;
  for (const auto& name : controllers()) {
    auto* one = controller(name);
    if (one != nullptr && (newest == nullptr || one->epoch() > newest->epoch())) {
      newest = one;
    }
  }
  if (newest != nullptr && !options_.sqlite && newest->epoch() != store_->epoch) {
    return nullptr;
  }
  return newest;
}

std::string Site::acting_host() const {
  const auto* acting = acting_controller();
  return acting != nullptr && acting == controller("d") ? "d" : "c";
}

std::vector<std::string> Site::controllers() const {
  return options_.second_controller ? std::vector<std::string>{"c", "d"}
                                    : std::vector<std::string>{"c"};
}

std::vector<std::string> Site::agents() const {
  std::vector<std::string> out;
  for (const auto& [name, machine] : machines_) {
    if (machine->kind == Kind::kAgent) {
      out.push_back(name);
    }
  }
  return out;
}

std::vector<std::string> Site::programs() const {
  std::vector<std::string> out;
  for (const auto& [name, machine] : machines_) {
    if (machine->kind != Kind::kPerson) {
      out.push_back(name);
    }
  }
  return out;
}

bool Site::everything_is_up() const {
  return std::ranges::all_of(machines_, [](const auto& entry) {
    return entry.first == "d" || (entry.second->host.up() && !entry.second->host.dying());
  });
}

}  // namespace verger::sim
