#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "engine/backup/backup_check.h"
#include "engine/backup/blob_store.h"
#include "engine/backup/manifest.h"
#include "engine/tool/tool_context.h"

namespace verger::tool {

/// Of --help.
inline constexpr std::string_view kRepositoryText =
    "Backup repository: a directory, s3://BUCKET/PREFIX, or a repository file (NAME.json)";
/// The store of what was given as a repository.
Result<std::unique_ptr<backup::BlobStore>> open_repository_store(ToolContext& tool,
                                                                 const std::string& given);

/// "full" or "differential".
std::string_view kind_of_backup(const backup::Manifest& manifest);
std::string host_name();
/// "2 d ago", "FAILED 3 h ago", "never".
std::string text_of_check(const std::optional<backup::BackupCheck>& check, Ticks now);
/// null: there was none.
nlohmann::ordered_json describe_check(const std::optional<backup::BackupCheck>& check);
/// What `-o json` says of a backup, without its files.
nlohmann::ordered_json describe_backup(const backup::Manifest& manifest);

}  // namespace verger::tool
