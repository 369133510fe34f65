#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::backup {

enum class Compression : std::uint8_t { kNone, kZstd };

/// "none" or "zstd".
std::string_view to_string(Compression compression);

/// Where a repository is and how to reach it: the content of a repository file
/// (docs/operations/backup.md, "Repository files").
struct RepositoryConfig {
  std::string location{};  ///< "/directory", or "s3://bucket/prefix"; the prefix may be empty
  // Of s3:// alone.
  std::string endpoint{};          ///< "https://host[:port]"; empty: that of AWS for the region
  std::string region{};            ///< empty: us-east-1
  std::string ca_file{};           ///< PEM; empty: the roots of the machine
  std::string credentials_file{};  ///< empty: the environment, AWS_ACCESS_KEY_ID and so on
  bool path_style = false;         ///< "endpoint/bucket/…", not "bucket.endpoint/…"
  // What is stored.
  Compression compression = Compression::kNone;
  Path key_file{};  ///< empty: not encrypted

  [[nodiscard]] bool is_object_store() const { return location.starts_with("s3://"); }
  friend bool operator==(const RepositoryConfig&, const RepositoryConfig&) = default;
};

/// The content of a repository file: a JSON object. Error: kInvalidArgument, naming the member.
Result<RepositoryConfig> parse_repository_config(std::string_view text);

/// Errors: kNotFound, kIo, kInvalidArgument (naming file and member).
Result<RepositoryConfig> read_repository_config(FileSystem& files, const Path& file);

/// What a user gives as a repository: a directory, "s3://bucket/prefix", or a repository file
/// ("NAME.json"). Of an s3:// location, endpoint, region and CA file are what the environment of
/// the AWS tools says. Errors: as of read_repository_config().
Result<RepositoryConfig> repository_config_of(FileSystem& files, std::string_view given);

/// kRefused where the repository is in one of these directories of a database, whether by its path
/// or through links: what destroys the database would destroy its backups.
Result<void> refuse_inside(const RepositoryConfig& config, std::span<const Path> directories);

}  // namespace verger::backup
