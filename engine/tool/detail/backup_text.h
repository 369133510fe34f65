#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "engine/backup/manifest.h"

namespace verger::tool {

/// Of --help.
inline constexpr std::string_view kRepositoryText = "Directory of the backup repository";

/// "full" or "differential".
std::string_view kind_of_backup(const backup::Manifest& manifest);
/// What `-o json` says of a backup, without its files.
nlohmann::ordered_json describe_backup(const backup::Manifest& manifest);

}  // namespace verger::tool
