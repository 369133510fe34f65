#include "tests/support/controller/run_on_journal.h"

#include <fmt/format.h>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace verger::test {

using namespace controller;

namespace {

template <class T>
T value_or_throw(Result<T> result) {
  if (!result) {
    throw std::runtime_error(result.error().message);
  }
  if constexpr (!std::is_void_v<T>) {
    return std::move(*result);
  }
}

}  // namespace

RunOnJournal::RunOnJournal() : cluster(time, 3) {
  cluster.agents = false;
  value_or_throw(disk.make_directories("/state"));
  journal = value_or_throw(open_sqlite_journal(disk, "/state/journal.db", time));
}

RunOnJournal::~RunOnJournal() = default;

void RunOnJournal::start(std::vector<planner::Stage> stages) {
  const auto epoch = value_or_throw(journal->begin_epoch("test"));
  registry = std::make_unique<Registry>(*journal, epoch);
  value_or_throw(registry->load());
  ClusterConfig config;
  config.name = "prod";
  for (const auto& node : cluster.nodes) {
    config.nodes.push_back(
        {node.name, fmt::format("http://10.0.0.{}:2113", node.index),
         cluster.agents ? fmt::format("http://10.0.0.{}:2114", node.index) : ""});
  }
  value_or_throw(registry->add(config));
  const auto core = std::make_shared<controller::detail::Core>(
      ExecutorParts{.executor = context.get_executor(),
                    .journal = *journal,
                    .registry = *registry,
                    .network = {.client = cluster,
                                .timers = time,
                                .clock = time,
                                .credentials = credentials_,
                                .log = null_log(),
                                .request_deadline = std::chrono::seconds(2)},
                    .random = random_,
                    .kinds = kinds,
                    .epoch = epoch,
                    .options = {.poll_interval = std::chrono::milliseconds(100)}});
  auto plan = std::make_shared<planner::Plan>();
  plan->cluster = "prod";
  plan->stages = std::move(stages);
  plan->hash = planner::hash_of(*plan);
  const auto live = std::make_shared<controller::detail::Run>(*journal, "r1", epoch);
  value_or_throw(core->record_start(*live, plan, "test"));
  run = std::make_shared<controller::detail::RunContext>(core, live);
}

std::vector<std::string> RunOnJournal::types(std::string_view step) const {
  std::vector<std::string> out;
  for (const auto& event : value_or_throw(journal->read("run/r1"))) {
    if (nlohmann::json::parse(event.data).value("step", std::string()) == step) {
      out.push_back(event.type);
    }
  }
  return out;
}

net::awaitable<bool> RunOnJournal::then_true(net::awaitable<void> work) {
  co_await std::move(work);
  co_return true;
}

void RunOnJournal::wait_for(net::awaitable<void> work) {
  static_cast<void>(wait_for(then_true(std::move(work))));
}

}  // namespace verger::test
