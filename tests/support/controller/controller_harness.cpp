#include "tests/support/controller/controller_harness.h"

#include <fmt/format.h>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "controller/operations/operation_modules.h"
#include "tests/support/member_case.h"

namespace verger::test {

using namespace controller;

namespace {

template <class T>
T must(Result<T> result) {
  if (!result) {
    throw std::runtime_error(result.error().message);
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*result);
  }
}

}  // namespace

ControllerHarness::ControllerHarness(int voters, bool agents)
    : cluster(time, voters), with_agents(agents) {
  cluster.agents = agents;
  must(disk.make_directories("/state"));
  must(disk.sync_directory("/"));
  options.poll_interval = std::chrono::milliseconds(100);
  options.events_between_snapshots = 3;  // so that each restart goes through some
}

ControllerHarness::~ControllerHarness() { crash(); }

void ControllerHarness::boot() {
  context = std::make_unique<net::io_context>();
  journal = must(open_sqlite_journal(disk, journal_path, time));
  before_this_life_ = must(journal->last_sequence());
  subscription_ = journal->subscribe([this](Sequence) { news = true; });
  epoch = must(journal->begin_epoch("harness"));
  registry = std::make_unique<Registry>(*journal, epoch);
  must(registry->load());
  auto settings = std::make_shared<OperationSettings>(operations);
  settings->kept_by_runs = [this](std::string_view name) {
    return controller::kept_by_runs_of(*executor, name);
  };
  kinds_ = standard_step_kinds(settings);
  if (more_kinds) {
    more_kinds(kinds_);
  }
  executor = std::make_unique<Executor>(
      ExecutorParts{.executor = context->get_executor(),
                    .journal = *journal,
                    .registry = *registry,
                    .network = network(),
                    .random = random_,
                    .kinds = kinds_,
                    .epoch = epoch,
                    .options = options,
                    .hours = make_hours ? make_hours(*journal, epoch) : nullptr});
  must(executor->start());
}

Network ControllerHarness::network() {
  return {.client = client == nullptr ? cluster : *client,
          .timers = time,
          .clock = time,
          .credentials = credentials_,
          .log = *log,
          .request_deadline = request_deadline,
          .served_certificate = served_certificate,
          .served_chain = [this](http::Endpoint of) { return cluster.served_chain(std::move(of)); },
          .roots_of = [this](const std::string&) { return roots; }};
}

void ControllerHarness::crash() {
  executor.reset();
  registry.reset();
  journal.reset();
  context.reset();
  disk.cut_power();
}

void ControllerHarness::register_cluster() {
  ClusterConfig config;
  config.name = "prod";
  config.credentials = "prod";
  for (const auto& node : cluster.nodes) {
    if (!node.member) {
      continue;
    }
    config.nodes.push_back(
        {node.name, fmt::format("{}://10.0.0.{}:2113", scheme, node.index),
         with_agents ? fmt::format("{}://10.0.0.{}:2114", scheme, node.index) : ""});
  }
  must(registry->add(std::move(config)));
}

planner::Policy ControllerHarness::quick_policy() {
  planner::Policy policy;
  policy.limits.election_settle_ms = 300;
  policy.limits.leader_hold_ms = 300;
  return policy;
}

std::string ControllerHarness::start_scavenge(const planner::Policy& policy) {
  auto made = must(wait_for(executor->make_plan("prod", policy, "test")));
  if (!made) {
    std::string why;
    for (const auto& refusal : made.error().refusals) {
      why += refusal.node + " " + refusal.code + ": " + refusal.message + "\n";
    }
    throw std::runtime_error("no plan: " + why);
  }
  auto run = wait_for(executor->apply(made->plan->hash, "test"));
  if (!run) {
    throw std::runtime_error("not started: " + run.error().error.message);
  }
  return *run;
}

bool ControllerHarness::run_until(const std::function<bool()>& done,
                                  std::chrono::milliseconds limit) {
  return time.run(*context, done, limit);
}

bool ControllerHarness::run_to_end(std::string_view run, std::chrono::milliseconds limit) {
  news = true;
  const bool ended = run_until(
      [this, run] { return std::exchange(news, false) && has_ended(state(run).status); }, limit);
  check_members();
  return ended;
}

void ControllerHarness::check_members() const {
  for (const auto& event : must(journal->read_all(before_this_life_, 1'000'000))) {
    auto data = nlohmann::json::parse(event.data);
    data.erase("plan");  // its text is hashed as it was made
    const auto wrong = not_snake_case(data, event.type);
    if (!wrong.empty()) {
      throw std::runtime_error("not in snake_case in the journal: " + *wrong.begin());
    }
  }
}

RunState ControllerHarness::state(std::string_view run) const {
  return *must(executor->find_run(run));
}

std::vector<std::string> ControllerHarness::alerts(std::string_view run) const {
  std::vector<std::string> out;
  for (const auto& alert : state(run).alerts) {
    out.push_back(alert.reason);
  }
  return out;
}

std::vector<std::string> ControllerHarness::events(std::string_view run,
                                                   std::string_view step) const {
  std::vector<std::string> out;
  for (const auto& event : must(journal->read(fmt::format("run/{}", run)))) {
    const auto data = nlohmann::json::parse(event.data);
    if (step.empty() || data.value("step", std::string()) == step) {
      out.push_back(event.type);
    }
  }
  return out;
}

}  // namespace verger::test
