#include <fmt/format.h>
#include <stdexcept>

#include "engine/base/exit_code.h"
#include "tests/support/processes/real_cluster.h"

// Its cluster, plans and runs, over the command line; the processes are in real_cluster.cpp.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

json last_line(const std::string& text) {
  const auto end = text.find_last_not_of('\n');
  if (end == std::string::npos) {
    return {};
  }
  const auto begin = text.rfind('\n', end);
  auto parsed = json::parse(text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin),
                            nullptr, false);
  return parsed.is_discarded() ? json() : parsed;
}

bool has_ended(const json& run) {
  const auto state = run.value("state", std::string());
  return state == "done" || state == "done-with-differences" || state == "failed" ||
         state == "cancelled";
}

}  // namespace

void RealCluster::register_cluster() {
  std::vector<std::string> arguments{"cluster", "add", "orders"};
  for (std::size_t i = 0; i < kNodes; ++i) {
    arguments.insert(arguments.end(), {"--node", fmt::format("n{}={}", i + 1, node_url(i))});
  }
  for (std::size_t i = 0; options_.with_agents && i < kNodes; ++i) {
    arguments.insert(arguments.end(), {"--agent", agent_url(i)});
  }
  if (options_.tls) {
    arguments.insert(arguments.end(), {"--credentials", "orders"});
  }
  Finished added;
  if (!eventually(seconds(30), [&] {
        added = verger(arguments);
        return added.status == 0;
      })) {
    throw std::runtime_error("cluster add: " + added.err + logs());
  }
  if (const auto problem = wait_until_settled(); !problem.empty()) {
    throw std::runtime_error(problem);
  }
}

bool RealCluster::settled() {
  const auto cluster = verger_json({"cluster", "show", "orders"});
  if (!cluster.is_object()) {
    return false;
  }
  int leaders = 0;
  int followers = 0;
  for (const auto& member : cluster.at("snapshot").at("nodes")) {
    const auto state = member.value("state", std::string());
    leaders += state == "Leader" ? 1 : 0;
    followers += state == "Follower" && member.at("lag_bytes") == 0 ? 1 : 0;
  }
  return leaders == 1 && followers == 2;
}

std::string RealCluster::wait_until_settled() {
  return eventually(options_.fast ? seconds(30) : seconds(90), [&] { return settled(); })
             ? ""
             : "the cluster did not settle: " + verger({"cluster", "show", "orders"}).out + logs();
}

Finished RealCluster::verger(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), program_of("verger"));
  Environment environment{
      {"VERGER_CONTROLLER",
       fmt::format("{}://127.0.0.1:{}", options_.tls ? "https" : "http", controller_port())}};
  if (options_.tls) {
    environment["VERGER_CA_FILE"] = authority_->root().string();
  }
  return run(arguments, environment);
}

Finished RealCluster::verger_once_settled(const std::vector<std::string>& arguments) const {
  Finished done;
  eventually(seconds(60), [&] {
    done = verger(arguments);
    return done.status != kExitRefused;
  });
  return done;
}

json RealCluster::verger_json(std::vector<std::string> arguments) const {
  arguments.insert(arguments.end(), {"-o", "json"});
  const auto finished = verger(std::move(arguments));
  return finished.status == 0 ? last_line(finished.out) : json();
}

std::string RealCluster::plan_scavenge(const std::vector<std::string>& more) {
  return plan_operation("scavenge", more);
}

std::string RealCluster::plan_operation(const std::string& operation,
                                        const std::vector<std::string>& more) {
  Finished planned;
  std::vector<std::string> arguments{"plan", operation, "orders", "-o", "json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  // Until the nodes agree on a leader.
  if (!eventually(seconds(60), [&] {
        planned = verger(arguments);
        return planned.status == 0;
      })) {
    throw std::runtime_error("plan: " + planned.err + logs());
  }
  return last_line(planned.out).at("hash").get<std::string>();
}

std::string RealCluster::start_scavenge_run(const std::vector<std::string>& more) {
  return start_run("scavenge", more);
}

std::string RealCluster::start_run(const std::string& operation,
                                   const std::vector<std::string>& more) {
  Finished applied;
  const auto apply = [&] {
    applied = verger({"apply", plan_operation(operation, more), "-o", "json"});
    return applied.status == 0;
  };
  // On a busy machine nodes elect another leader between a plan and its start.
  if (eventually(seconds(60), [&] { return apply() || !applied.err.contains("stale_plan"); }) &&
      applied.status == 0) {
    return last_line(applied.out).at("id").get<std::string>();
  }
  // A controller that was killed in the middle of the answer may have begun all the same.
  std::string id;
  eventually(seconds(20), [&] {
    restart_dead();
    const auto runs = verger_json({"run", "list", "orders"});
    if (runs.is_object()) {
      id = runs.value("id", std::string());
    }
    return !id.empty();
  });
  if (id.empty()) {
    throw std::runtime_error("apply: " + applied.err + logs());
  }
  return id;
}

json RealCluster::wait_for_run(const std::string& id, seconds limit) {
  json run;
  const bool ended = eventually(limit, [&] {
    restart_dead();
    auto seen = verger_json({"run", "show", id});
    if (seen.is_object()) {
      run = std::move(seen);
    }
    return run.is_object() && has_ended(run);
  });
  return ended ? run : json();
}

}  // namespace verger::test
