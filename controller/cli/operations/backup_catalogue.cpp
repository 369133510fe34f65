#include "controller/cli/operations/backup_catalogue.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fmt/format.h>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

namespace verger::cli {
namespace {

using nlohmann::json;

/// As it is read at a glance: "45 s", "12 min", "5 h", "3 d".
std::string age_text(std::chrono::seconds age) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  const auto seconds = std::max<std::int64_t>(age.count(), 0);
  if (seconds < 2 * kMinute) {
    return fmt::format("{} s", seconds);
  }
  if (seconds < 2 * kHour) {
    return fmt::format("{} min", seconds / kMinute);
  }
  return seconds < 2 * kDay ? fmt::format("{} h", seconds / kHour)
                            : fmt::format("{} d", seconds / kDay);
}

std::chrono::seconds seconds_of(const json& object, const char* name) {
  return std::chrono::seconds(number_of(object, name));
}

/// When it was last checked, and that it failed.
std::string check_text(const json& backup, const char* name) {
  const auto check = object_of(backup, name);
  if (check.empty()) {
    return "never";
  }
  const auto age = age_text(seconds_of(check, "age_seconds")) + " ago";
  return check.value("passed", false) ? age : "FAILED " + age;
}

std::string kind_text(const json& backup) {
  return backup.value("full", false) ? "full" : "differential";
}

/// What is wrong with it, in a few words; "-": nothing known.
std::string damage_text(const json& backup) {
  if (const auto damage = text_of(backup, "damage"); !damage.empty()) {
    return damage;
  }
  for (const auto* name : {"last_verify", "last_drill"}) {
    const auto check = object_of(backup, name);
    if (!check.empty() && !check.value("passed", false)) {
      return text_of(check, "summary");
    }
  }
  return "-";
}

void print_problems(const CliContext& context, const json& answer) {
  for (const auto& problem : list_of(answer, "problems")) {
    const auto repository = text_of(problem, "repository");
    context.out << fmt::format("{}{}: not known: {}\n", text_of(problem, "node"),
                               repository.empty() ? "" : ", " + repository,
                               text_of(problem, "reason"));
  }
  for (const auto& conflict : list_of(answer, "conflicts")) {
    if (conflict.is_string()) {
      context.out << "conflict: " << conflict.get<std::string>() << '\n';
    }
  }
}

std::string path_of(const std::string& cluster, const char* what) {
  return fmt::format("/clusters/{}/{}", http::percent_encode(cluster), what);
}

int list_repositories(const CliContext& context, const std::string& cluster) {
  const auto answer = context.api.get(path_of(cluster, "backup-repositories"));
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << answer->dump() << '\n';
  } else {
    print_repositories(context, *answer);
  }
  return kDone;
}

int list_backups(const CliContext& context, const BackupFilter& filter) {
  const auto answer = request_backups(context, filter);
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    for (const auto& backup : list_of(*answer, "backups")) {
      context.out << backup.dump() << '\n';
    }
  } else {
    print_backups(context, *answer);
  }
  // What is missing from a list must not look like there were none.
  return list_of(*answer, "backups").empty() && !list_of(*answer, "problems").empty() ? kFailed
                                                                                      : kDone;
}

int show_backup(const CliContext& context, const BackupFilter& filter, const std::string& text) {
  const auto answer = request_backups(context, filter);
  if (!answer) {
    return context.fail(answer.error());
  }
  const auto backup = find_backup(*answer, text);
  if (!backup) {
    return context.fail(backup.error());
  }
  if (context.json) {
    context.out << backup->dump() << '\n';
  } else {
    print_backup(context, *backup);
  }
  return kDone;
}

void add_filter_options(CLI::App& command, BackupFilter& filter) {
  command.add_option("--repository", filter.repository, "Only in this one, by name or id");
  command.add_option("--node", filter.node, "Only those of this node");
  command.add_flag("--all", filter.all,
                   "Those of other clusters in the same repositories, too, as to restore one here");
}

}  // namespace

std::expected<json, CallFailure> request_backups(const CliContext& context,
                                                 const BackupFilter& filter) {
  auto path = path_of(filter.cluster, "backups");
  char separator = '?';
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      path += fmt::format("{}{}={}", separator, name, http::percent_encode(value));
      separator = '&';
    }
  };
  add("repository", filter.repository);
  add("node", filter.node);
  add("all", filter.all ? "true" : "");
  return context.api.get_all(path, "backups");
}

std::expected<json, CallFailure> find_backup(const json& list, const std::string& text) {
  const auto backups = list_of(list, "backups");
  std::vector<json> found;
  for (const auto& backup : backups) {
    const auto id = text_of(backup, "id");
    if (text == "latest" || id == text) {
      return backup;  // newest first
    }
    if (!text.empty() && (id.starts_with(text) || id.ends_with(text))) {
      found.push_back(backup);
    }
  }
  if (found.size() == 1) {
    return found.front();
  }
  std::string ids;
  for (const auto& backup : found.empty() ? backups.get<std::vector<json>>() : found) {
    ids += (ids.empty() ? "" : ", ") + text_of(backup, "id");
    constexpr std::size_t kLongest = 400;
    if (ids.size() > kLongest) {
      ids += ", …";
      break;
    }
  }
  const auto cluster = text_of(list, "cluster");
  return std::unexpected(CallFailure{
      .exit_code = kUsage,
      .message = found.empty()
                     ? fmt::format("{} has no backup {}; {}", cluster, text,
                                   ids.empty() ? "none is known: verger backup list " + cluster
                                               : "it has: " + ids)
                     : fmt::format("\"{}\" may be each of {}; give more digits", text, ids),
      .problem = {}});
}

void print_repositories(const CliContext& context, const json& answer) {
  Table table({{"repository"},
               {"node"},
               {"location", Table::Align::kWrap},
               {"free", Table::Align::kRight},
               {"backups", Table::Align::kRight},
               {"encrypted"},
               {"drills"}});
  for (const auto& repository : list_of(answer, "repositories")) {
    for (const auto& agent : list_of(repository, "agents")) {
      table.add({text_of(agent, "name"), text_of(agent, "node"), text_of(agent, "location"),
                 optional_bytes(agent, "free_bytes"), optional_number(repository, "backups"),
                 verdict(repository, "encrypted", "yes", "no", "-"),
                 agent.value("drills", false) ? "yes" : "no"});
    }
  }
  if (table.empty()) {
    context.out << "no agent has a backup repository; name a directory of repository files with "
                   "their option --backup-repositories\n";
  } else {
    context.print(table);
  }
  std::set<std::pair<std::string, std::string>> said;
  for (const auto& repository : list_of(answer, "repositories")) {
    for (const auto& agent : list_of(repository, "agents")) {
      const auto why = text_of(agent, "drill_problem");
      if (!why.empty() && said.emplace(text_of(agent, "node"), why).second) {
        context.out << fmt::format("{}: no drills: {}\n", text_of(agent, "node"), why);
      }
    }
  }
  print_problems(context, answer);
}

void print_backups(const CliContext& context, const json& list) {
  const auto backups = list_of(list, "backups");
  std::set<std::string> repositories;
  std::set<std::string> clusters;
  for (const auto& backup : backups) {
    repositories.insert(text_of(backup, "repository_id"));
    clusters.insert(text_of(backup, "cluster"));
  }
  const bool several = repositories.size() > 1;
  const bool foreign = clusters.size() > 1;
  Table table({{"backup"},
               {"repository", Table::Align::kLeft, true},
               {"cluster", Table::Align::kLeft, true},
               {"node"},
               {"age", Table::Align::kRight},
               {"size", Table::Align::kRight},
               {"kind"},
               {"verified"},
               {"drilled"},
               {"damage", Table::Align::kWrap, true}});
  for (const auto& backup : backups) {
    const auto cluster = text_of(backup, "cluster");
    const bool unread = !text_of(backup, "damage").empty();  // of its manifest nothing is known
    table.add({text_of(backup, "id"), several ? text_of(backup, "repository") : "-",
               foreign && !cluster.empty() ? cluster : "-", unread ? "-" : text_of(backup, "node"),
               unread ? "-" : age_text(seconds_of(backup, "age_seconds")),
               unread ? "-" : optional_bytes(backup, "restored_bytes"),
               unread ? "-" : kind_text(backup), check_text(backup, "last_verify"),
               check_text(backup, "last_drill"), damage_text(backup)});
  }
  if (table.empty()) {
    context.out << "no backup is known\n";
  } else {
    context.print(table);
  }
  if (const auto others = number_of(list, "of_other_clusters"); others > 0) {
    context.out << fmt::format("{} of other clusters in the same repositories: --all\n",
                               counted(others, "backup"));
  }
  print_problems(context, list);
}

void print_backup(const CliContext& context, const json& backup) {
  const auto line = [&context](const char* name, const std::string& value) {
    if (!value.empty() && value != "-") {
      context.out << fmt::format("{:<18}{}\n", name, value);
    }
  };
  line("backup", text_of(backup, "id"));
  line("damage", text_of(backup, "damage"));
  line("repository",
       fmt::format("{} ({})", text_of(backup, "repository"), text_of(backup, "repository_id")));
  line("cluster", text_of(backup, "cluster"));
  line("node", fmt::format("{}, on {}", text_of(backup, "node"), text_of(backup, "host")));
  line("server version", text_of(backup, "server_version"));
  const auto parent = text_of(backup, "parent");
  line("kind", kind_text(backup) + (parent.empty() ? "" : ", after " + parent));
  line("source", text_of(backup, "state"));
  line("point in time", time_of(backup, "checkpoints_at"));
  line("made",
       fmt::format("{} to {}", time_of(backup, "started_at"), time_of(backup, "finished_at")));
  line("log ends at", fmt::format("{}, epoch {}", optional_number(backup, "end_position"),
                                  optional_number(backup, "epoch_number")));
  line("size",
       fmt::format("{} in {}; stored {}, of which {} were known",
                   optional_bytes(backup, "restored_bytes"),
                   counted(number_of(backup, "files"), "file"),
                   optional_bytes(backup, "stored_bytes"), optional_bytes(backup, "reused_bytes")));
  line("logical digest", text_of(backup, "logical_digest"));
  line("readable digest", text_of(backup, "readable_digest"));
  constexpr std::array<std::pair<const char*, const char*>, 2> kChecks{
      {{"last_verify", "verified"}, {"last_drill", "drilled"}}};
  for (const auto& [name, title] : kChecks) {
    const auto check = object_of(backup, name);
    line(title, check.empty() ? "never"
                              : fmt::format("{}, {}{}{}", time_of(check, "at"),
                                            check.value("passed", false) ? "passed" : "FAILED",
                                            text_of(check, "summary").empty() ? "" : ": ",
                                            text_of(check, "summary")));
  }
  for (const auto& warning : list_of(backup, "warnings")) {
    if (warning.is_string()) {
      line("warning", warning.get<std::string>());
    }
  }
}

void add_backup_lists(CLI::App& backup, Command& chosen) {
  auto filter = std::make_shared<BackupFilter>();
  auto* repositories = backup.add_subcommand(
      "repositories", "The repositories that the agents of a cluster have, and where");
  repositories->footer("Example: verger backup repositories orders");
  repositories->add_option("CLUSTER", filter->cluster)->required();
  repositories->callback([filter, &chosen] {
    chosen = [filter](const CliContext& context) {
      return list_repositories(context, filter->cluster);
    };
  });

  auto* list = backup.add_subcommand(
      "list", "The backups of a cluster, newest first, and when each was verified and drilled");
  list->footer("Example: verger backup list orders --node n2");
  list->add_option("CLUSTER", filter->cluster)->required();
  add_filter_options(*list, *filter);
  list->callback([filter, &chosen] {
    chosen = [filter](const CliContext& context) { return list_backups(context, *filter); };
  });

  auto id = std::make_shared<std::string>("latest");
  auto* show = backup.add_subcommand("show", "One backup: what it holds, and how it was checked");
  show->footer("Example: verger backup show orders 1a2b3c4d");
  show->add_option("CLUSTER", filter->cluster)->required();
  show->add_option("BACKUP", *id, "Its id, or digits that only it has (latest)");
  add_filter_options(*show, *filter);
  show->callback([filter, id, &chosen] {
    chosen = [filter, id](const CliContext& context) { return show_backup(context, *filter, *id); };
  });
}

}  // namespace verger::cli
