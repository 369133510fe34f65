#include "controller/cli/operations/backup_policies.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"
#include "nodeagent/http/message.h"

namespace verger::cli {
namespace {

using nlohmann::json;

std::string schedule_text(const json& policy) {
  std::vector<std::string> times;
  for (const auto& each : list_of(policy, "schedule")) {
    times.push_back(fmt::format("{} {}", text_of(each, "cron"), text_of(each, "zone")));
  }
  return times.empty() ? "by hand" : fmt::format("{}", fmt::join(times, "; "));
}

/// "7 daily, 5 weekly"
std::string retention_text(const json& backup) {
  constexpr std::pair<const char*, const char*> kRules[] = {{"keepLast", "latest"},
                                                            {"keepDaily", "daily"},
                                                            {"keepWeekly", "weekly"},
                                                            {"keepMonthly", "monthly"},
                                                            {"keepWithinDays", "days"}};
  std::vector<std::string> rules;
  for (const auto& [key, unit] : kRules) {
    if (const auto number = backup.value(key, std::int64_t{0}); number > 0) {
      rules.push_back(fmt::format("{} {}", number, unit));
    }
  }
  return rules.empty() ? "all" : fmt::format("{}", fmt::join(rules, ", "));
}

std::string checks_text(const json& backup) {
  const auto every = backup.value("drillEvery", std::int64_t{0});
  const std::string verify = backup.value("verify", false) ? "verify" : "none";
  return every == 0 ? verify
                    : fmt::format("{}drill {}", verify == "none" ? "" : "verify, ",
                                  every == 1 ? "each" : fmt::format("1 of {}", every));
}

/// What became of the last due time.
std::string last_text(const json& policy, const json& selected) {
  if (!policy.value("enabled", true)) {
    return "disabled";
  }
  const auto waiting = text_of(selected, "waiting");
  return waiting.empty() ? text_of(selected, "outcome") : "waits: " + waiting;
}

int show_policies(const CliContext& context, const std::string& cluster) {
  const auto answer = context.api.get_all("/policies", "policies");
  if (!answer) {
    return context.fail(answer.error());
  }
  const auto policies = backup_policies_of(list_of(*answer, "policies"), cluster);
  if (policies.empty()) {
    // None, or a cluster that is not there.
    if (const auto known = context.api.get("/clusters/" + http::percent_encode(cluster)); !known) {
      return context.fail(known.error());
    }
  }
  if (context.json) {
    for (const auto& policy : policies) {
      context.out << policy.dump() << '\n';
    }
    return kDone;
  }
  if (policies.empty()) {
    context.out << fmt::format(
        "no policy makes backups of cluster {}; policies/nightly-backup.yaml is an example, and "
        "verger policy apply FILE puts one into force\n",
        cluster);
    return kDone;
  }
  print_backup_policies(context, policies);
  return kDone;
}

}  // namespace

json backup_policies_of(const json& policies, const std::string& cluster) {
  auto out = json::array();
  for (const auto& policy : policies) {
    const auto plan = policy.value("plan", json::object());
    auto selected = json::array();
    for (const auto& each : list_of(policy, "selected")) {
      if (text_of(each, "cluster") == cluster) {
        selected.push_back(each);
      }
    }
    if (text_of(plan, "operation") == "backup" && !selected.empty()) {
      auto kept = policy;
      kept["selected"] = std::move(selected);
      out.push_back(std::move(kept));
    }
  }
  return out;
}

void print_backup_policies(const CliContext& context, const json& policies) {
  Table table({{"policy"},
               {"task"},
               {"schedule"},
               {"repository"},
               {"source"},
               {"keeps"},
               {"checks"},
               {"last due"},
               {"outcome", Table::Align::kWrap}});
  for (const auto& policy : policies) {
    const auto backup = policy.at("plan").value("backup", json::object());
    const auto nodes = text_of(backup, "nodes");
    const auto selected = list_of(policy, "selected").front();
    table.add({text_of(policy, "name"), text_of(backup, "task"), schedule_text(policy),
               text_of(backup, "repository"), nodes.empty() ? text_of(backup, "source") : nodes,
               retention_text(backup), checks_text(backup), time_of(selected, "last_due"),
               last_text(policy, selected)});
  }
  context.print(table);
}

void add_backup_policies(CLI::App& backup, Command& chosen) {
  auto cluster = std::make_shared<std::string>();
  auto* command = backup.add_subcommand(
      "policy", "The policies by which the cluster is backed up: when, where to, what is kept");
  command->add_option("CLUSTER", *cluster)->required();
  command->footer("Example: verger backup policy orders");
  command->callback([cluster, &chosen] {
    chosen = [cluster](const CliContext& context) { return show_policies(context, *cluster); };
  });
}

}  // namespace verger::cli
