#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"
#include "engine/base/clock.h"

namespace verger::cli {
namespace {

using nlohmann::json;

/// The file's text as a request body; "-" is standard input.
std::expected<json, std::string> policy_body(const std::string& file) {
  std::ostringstream text;
  if (file == "-") {
    std::ifstream in("/dev/stdin");
    text << in.rdbuf();
  } else {
    std::ifstream in(file);
    if (!in || std::filesystem::is_directory(file)) {
      return std::unexpected(fmt::format("{}: cannot be read; give a policy's YAML file", file));
    }
    text << in.rdbuf();
  }
  return json{{"yaml", text.str()}};
}

int no_file(const CliContext& context, const std::string& why) {
  context.err << "verger: " << why << '\n';
  return kUsage;
}

void print_notes(const CliContext& context, const json& policy) {
  for (const auto& note : list_of(policy, "notes")) {
    context.out << "note: " << note.get<std::string>() << '\n';
  }
}

int validate(const CliContext& context, const std::string& file) {
  const auto body = policy_body(file);
  if (!body) {
    return no_file(context, body.error());
  }
  const auto policy = context.api.post("/policies/validate", *body);
  if (!policy) {
    return context.fail(policy.error());
  }
  if (context.json) {
    context.out << policy->dump() << '\n';
    return kDone;
  }
  std::string clusters;
  for (const auto& name : list_of(*policy, "selected_now")) {
    clusters += (clusters.empty() ? "" : ", ") + name.get<std::string>();
  }
  context.out << fmt::format("policy {} is valid; it selects now: {}\n", text_of(*policy, "name"),
                             clusters.empty() ? "no registered cluster" : clusters);
  print_notes(context, *policy);
  return kDone;
}

/// The policy's name, as the controller reads it.
std::expected<std::string, CallFailure> name_in(const CliContext& context, const json& body) {
  const auto policy = context.api.post("/policies/validate", body);
  if (!policy) {
    return std::unexpected(policy.error());
  }
  return text_of(*policy, "name");
}

int apply_policy(const CliContext& context, const std::string& file) {
  const auto body = policy_body(file);
  if (!body) {
    return no_file(context, body.error());
  }
  const auto name = name_in(context, *body);
  if (!name) {
    return context.fail(name.error());
  }
  const auto policy = context.api.put("/policies/" + http::percent_encode(*name), *body);
  if (!policy) {
    return context.fail(policy.error());
  }
  if (context.json) {
    context.out << policy->dump() << '\n';
    return kDone;
  }
  context.out << fmt::format("policy {} is applied, revision {}\n", *name,
                             number_of(*policy, "revision"));
  print_notes(context, *policy);
  for (const auto& cluster : list_of(*policy, "selected")) {
    context.out << fmt::format("see when it is due with: verger schedule next {}\n",
                               text_of(cluster, "cluster"));
  }
  return kDone;
}

/// 1 where there are differences, as diff does.
int diff_policy(const CliContext& context, const std::string& file) {
  const auto body = policy_body(file);
  if (!body) {
    return no_file(context, body.error());
  }
  const auto diff = context.api.post("/policies/diff", *body);
  if (!diff) {
    return context.fail(diff.error());
  }
  const auto changes = list_of(*diff, "changes");
  if (context.json) {
    context.out << diff->dump() << '\n';
    return changes.empty() ? kDone : kFailed;
  }
  const bool known = diff->value("known", false);
  if (!known) {
    context.out << fmt::format("policy {} is new\n", text_of(*diff, "name"));
  }
  for (const auto& change : changes) {
    const auto before = known ? change["before"].dump() + " -> " : std::string();
    context.out << fmt::format("{}: {}{}\n", text_of(change, "key"), before,
                               change["after"].dump());
  }
  return changes.empty() ? kDone : kFailed;
}

/// Why it comes too late, waits or was dropped; of what awaits approval also how that is given.
std::string why_of(const json& cluster) {
  if (auto late = text_of(cluster, "late"); !late.empty()) {
    return "too late: " + late;
  }
  if (auto old = text_of(cluster, "too_old"); !old.empty()) {
    return old;
  }
  auto why = text_of(cluster, "waiting");
  if (why.empty()) {
    why = text_of(cluster, "reason");
  }
  const auto plan = text_of(cluster, "plan");
  return text_of(cluster, "outcome") == "needs-approval" && !plan.empty()
             ? fmt::format("{}{}verger apply {}", why, why.empty() ? "" : "; ", plan)
             : why;
}

int list_policies(const CliContext& context) {
  const auto answer = context.api.get_all("/policies", "policies");
  if (!answer) {
    return context.fail(answer.error());
  }
  Table table({{"policy"},
               {"operation"},
               {"cluster"},
               {"open"},
               {"last due"},
               {"outcome"},
               {"why", Table::Align::kWrap}});
  for (const auto& policy : list_of(*answer, "policies")) {
    if (context.json) {
      context.out << policy.dump() << '\n';
      continue;
    }
    const auto operation = policy.value("plan", json::object()).value("operation", std::string());
    const auto selected = list_of(policy, "selected");
    const auto state = policy.value("enabled", true) ? std::string() : std::string("disabled");
    if (selected.empty()) {
      table.add({text_of(policy, "name"), operation, "-", "-", "-", state, ""});
    }
    for (const auto& cluster : selected) {
      const auto waiting = text_of(cluster, "waiting");
      const auto outcome = text_of(cluster, "outcome");
      table.add({text_of(policy, "name"), operation, text_of(cluster, "cluster"),
                 cluster.value("open", false) ? "yes" : "no", time_of(cluster, "last_due"),
                 !state.empty()                ? state
                 : !waiting.empty()            ? "waiting"
                 : outcome == "needs-approval" ? "awaits approval"
                                               : outcome,
                 why_of(cluster)});
    }
  }
  if (!context.json) {
    context.print(table);
  }
  return kDone;
}

int show_policy(const CliContext& context, const std::string& name) {
  const auto policy = context.api.get("/policies/" + http::percent_encode(name));
  if (!policy) {
    return context.fail(policy.error());
  }
  if (context.json) {
    context.out << policy->dump() << '\n';
    return kDone;
  }
  context.out << text_of(*policy, "yaml");
  context.out << fmt::format("# revision {}, applied by {} at {}\n", number_of(*policy, "revision"),
                             text_of(*policy, "applied_by"), text_of(*policy, "applied_at"));
  for (const auto& cluster : list_of(*policy, "selected")) {
    context.out << fmt::format(
        "# {}: {}{}{}\n", text_of(cluster, "cluster"),
        cluster.value("open", false) ? "open" : "closed (" + text_of(cluster, "hours") + ")",
        text_of(cluster, "until").empty() ? "" : " until " + text_of(cluster, "until"),
        text_of(cluster, "waiting").empty() ? "" : "; waits: " + text_of(cluster, "waiting"));
  }
  return kDone;
}

int delete_policy(const CliContext& context, const std::string& name) {
  const auto answer = context.api.remove("/policies/" + http::percent_encode(name));
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << json{{"name", name}, {"deleted", true}}.dump() << '\n';
  } else {
    context.out << fmt::format("policy {} is deleted; runs it started continue\n", name);
  }
  return kDone;
}

/// The person's zone: TZ, or what /etc/localtime points to.
std::string zone_here() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is not changed
  if (const char* zone = std::getenv("TZ"); zone != nullptr && *zone != '\0') {
    return *zone == ':' ? zone + 1 : zone;
  }
  char target[512];
  const auto length = ::readlink("/etc/localtime", target, sizeof target);
  const std::string path(target, length > 0 ? static_cast<std::size_t>(length) : 0);
  const auto at = path.find("zoneinfo/");
  return at == std::string::npos ? "UTC" : path.substr(at + 9);
}

int schedule_next(const CliContext& context, const std::string& cluster, const std::string& zone) {
  const auto answer =
      context.api.get("/clusters/" + http::percent_encode(cluster) +
                      "/schedule?zone=" + http::percent_encode(zone.empty() ? zone_here() : zone));
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << answer->dump() << '\n';
    return kDone;
  }
  const auto times = list_of(*answer, "times");
  if (times.empty()) {
    context.out << fmt::format("no policy with a schedule or windows selects cluster {}\n",
                               cluster);
    return kDone;
  }
  Table table({{"what"},
               {"policy"},
               {"your time (" + text_of(*answer, "zone") + ")"},
               {"the policy's time"},
               {"note"}});
  for (const auto& each : times) {
    const bool opens = text_of(each, "kind") == "opens";
    std::string note;
    if (opens && each["length_seconds"].is_number()) {
      note = "for " + length_text(std::chrono::seconds(number_of(each, "length_seconds")));
    } else if (opens) {
      note = "without end";
    } else if (!each.value("inside", true)) {
      note = "windows are closed then";
    }
    table.add({text_of(each, "kind"), text_of(each, "policy"), text_of(each, "yours"),
               text_of(each, "policys"), note});
  }
  context.print(table);
  for (const auto& policy : list_of(*answer, "policies")) {
    if (!text_of(policy, "waiting").empty()) {
      context.out << fmt::format("{} is due and waits: {}\n", text_of(policy, "policy"),
                                 text_of(policy, "waiting"));
    }
  }
  return kDone;
}

struct PauseOptions {
  std::string cluster;
  std::string until;
  bool drain = false;
  bool now = false;
};

int pause_cluster(const CliContext& context, const PauseOptions& options) {
  json body{{"mode", options.drain ? "drain" : options.now ? "now" : "policy"}};
  if (!options.until.empty()) {
    const auto until = parse_until(options.until, system_clock().now());
    if (!until) {
      context.err << "verger: --until " << until.error().message << '\n';
      return kUsage;
    }
    body["until"] = format_ticks(*until);
  }
  if (!context.api.reason().empty()) {
    body["reason"] = context.api.reason();
  }
  const auto answer =
      context.api.post("/clusters/" + http::percent_encode(options.cluster) + "/pause", body);
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << answer->dump() << '\n';
  } else {
    const auto until = text_of(*answer, "pause_until");
    context.out << fmt::format(
        "cluster {} is paused {}; nothing new starts on it\n", options.cluster,
        until.empty() ? "until it is resumed" : "until " + to_the_second(until));
    if (const auto notice = text_of(*answer, "notice"); !notice.empty()) {
      context.out << notice << '\n';
    }
  }
  return kDone;
}

int resume_cluster(const CliContext& context, const std::string& cluster) {
  const auto answer =
      context.api.post("/clusters/" + http::percent_encode(cluster) + "/resume", json::object());
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << answer->dump() << '\n';
  } else {
    context.out << fmt::format("cluster {} is resumed\n", cluster);
  }
  return kDone;
}

}  // namespace

void add_policy_commands(CLI::App& app, Command& chosen) {
  auto* policy = app.add_subcommand("policy", "Policies: what is done when, where and how");
  policy->require_subcommand(1);
  const auto with_file = [&](const char* name, const char* help,
                             int (*run)(const CliContext&, const std::string&)) {
    auto file = std::make_shared<std::string>();
    auto* command = policy->add_subcommand(name, help);
    command->add_option("FILE", *file, "A policy's YAML; - is standard input")->required();
    command->callback([file, run, &chosen] {
      chosen = [file, run](const CliContext& context) { return run(context, *file); };
    });
  };
  const auto with_name = [&](const char* name, const char* help,
                             int (*run)(const CliContext&, const std::string&)) {
    auto which = std::make_shared<std::string>();
    auto* command = policy->add_subcommand(name, help);
    command->add_option("POLICY", *which)->required();
    command->callback([which, run, &chosen] {
      chosen = [which, run](const CliContext& context) { return run(context, *which); };
    });
  };
  with_file("validate", "Say whether it can be applied, and everything that is wrong", validate);
  with_file("apply", "Follow it from now on; an older one of that name is replaced", apply_policy);
  with_file("diff", "What applying it would change; exit code 1 where something would",
            diff_policy);
  policy->add_subcommand("list", "The policies, and what became of their last due times")
      ->callback([&chosen] { chosen = list_policies; });
  with_name("show", "One policy, as it was applied", show_policy);
  with_name("delete", "Delete it; runs it started continue", delete_policy);

  auto* schedule = app.add_subcommand("schedule", "When maintenance is due, and when it may work");
  schedule->require_subcommand(1);
  auto cluster = std::make_shared<std::string>();
  auto zone = std::make_shared<std::string>();
  auto* next = schedule->add_subcommand("next", "The next ten openings and due times of a cluster");
  next->add_option("CLUSTER", *cluster)->required();
  next->add_option("--zone", *zone, "Your IANA zone (default: TZ, or this machine's)");
  next->callback([cluster, zone, &chosen] {
    chosen = [cluster, zone](const CliContext& context) {
      return schedule_next(context, *cluster, *zone);
    };
  });
}

void add_cluster_intents(CLI::App& cluster, Command& chosen) {
  auto options = std::make_shared<PauseOptions>();
  auto* pause =
      cluster.add_subcommand("pause", "Start nothing on a cluster; pause what runs there");
  pause->add_option("CLUSTER", options->cluster)->required();
  auto* drain = pause->add_flag("--drain", options->drain, "Let work under way end");
  pause->add_flag("--now", options->now, "Stop work under way at once, overriding the policy")
      ->excludes(drain);
  pause->add_option(
      "--until", options->until,
      "Resume it then: 2h, 2026-11-22T06:00:00Z, with another zone's offset, or 06:00 "
      "of this machine");
  pause->callback([options, &chosen] {
    chosen = [options](const CliContext& context) { return pause_cluster(context, *options); };
  });
  auto name = std::make_shared<std::string>();
  auto* resume = cluster.add_subcommand("resume", "End a cluster's pause");
  resume->add_option("CLUSTER", *name)->required();
  resume->callback([name, &chosen] {
    chosen = [name](const CliContext& context) { return resume_cluster(context, *name); };
  });
}

}  // namespace verger::cli
