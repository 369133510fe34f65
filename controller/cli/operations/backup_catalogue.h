#pragma once

#include <expected>
#include <string>

#include <nlohmann/json.hpp>

#include "controller/cli/api_client.h"
#include "controller/cli/commands.h"

/// The backups of a cluster, for people, and which of them an operator means.
namespace verger::cli {

/// Of which backups.
struct BackupFilter {
  std::string cluster{};
  std::string repository{};  ///< name or id; empty: all
  std::string node{};        ///< empty: all
  bool all = false;          ///< those of other clusters in the same repositories, too
};

/// All pages of what the API lists.
std::expected<nlohmann::json, CallFailure> request_backups(const CliContext& context,
                                                           const BackupFilter& filter);

/// The backup of `list` that `text` names: "latest", an id, or digits that only one id has, at its
/// begin or at its end. Error: kUsage, with what there is.
std::expected<nlohmann::json, CallFailure> find_backup(const nlohmann::json& list,
                                                       const std::string& text);

void print_repositories(const CliContext& context, const nlohmann::json& answer);
void print_backups(const CliContext& context, const nlohmann::json& list);
void print_backup(const CliContext& context, const nlohmann::json& backup);

/// repositories, list and show, below `verger backup`.
void add_backup_lists(CLI::App& backup, Command& chosen);

}  // namespace verger::cli
