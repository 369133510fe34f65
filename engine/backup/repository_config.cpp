#include "engine/backup/repository_config.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <initializer_list>
#include <map>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/json_depth.h"

namespace verger::backup {
namespace {

constexpr std::uint64_t kLargestConfig = 64U << 10U;
constexpr std::string_view kObjectStorePrefix = "s3://";

Error bad_config(std::string message) { return {Errc::kInvalidArgument, std::move(message)}; }

Result<void> check_location(const std::string& location) {
  if (location.starts_with(kObjectStorePrefix)) {
    const auto rest = std::string_view(location).substr(kObjectStorePrefix.size());
    const auto bucket = rest.substr(0, rest.find('/'));
    const bool fits =
        bucket.size() >= 3 && bucket.size() <= 63 && std::ranges::all_of(bucket, [](char letter) {
          return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                 letter == '-' || letter == '.' || letter == '_';
        });
    if (!fits) {
      return bad_config(
          fmt::format("location: \"{}\" names no bucket (3 to 63 of a-z, 0-9, '-', '.'); give "
                      "s3://BUCKET/PREFIX",
                      location));
    }
    return {};
  }
  if (!location.starts_with('/')) {
    return bad_config(fmt::format(
        "location: \"{}\" is neither an absolute directory nor s3://BUCKET/PREFIX", location));
  }
  return {};
}

Result<void> check_absolute(std::string_view member, const std::string& path) {
  if (path.empty() || path.starts_with('/')) {
    return {};
  }
  return bad_config(
      fmt::format("{}: \"{}\" is not an absolute path; give it from / on", member, path));
}

Result<void> check_config(const RepositoryConfig& config) {
  VERGER_RETURN_IF_ERROR(check_location(config.location));
  VERGER_RETURN_IF_ERROR(check_absolute("caFile", config.ca_file));
  VERGER_RETURN_IF_ERROR(check_absolute("credentialsFile", config.credentials_file));
  VERGER_RETURN_IF_ERROR(check_absolute("keyFile", config.key_file.string()));
  if (!config.endpoint.empty() && !config.endpoint.starts_with("https://") &&
      !config.endpoint.starts_with("http://")) {
    return bad_config(
        fmt::format("endpoint: \"{}\" does not begin with https:// or http://", config.endpoint));
  }
  return {};
}

Result<void> refuse_object_store_members(const nlohmann::json& object) {
  for (const char* member : {"endpoint", "region", "caFile", "credentialsFile", "pathStyle"}) {
    if (object.contains(member)) {
      return bad_config(
          fmt::format("{}: only for a location s3://BUCKET/PREFIX; remove it", member));
    }
  }
  return {};
}

/// A variable of the environment, the first one that is set of these.
std::string from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
      return value;
    }
  }
  return {};
}

}  // namespace

std::string_view to_string(Compression compression) {
  switch (compression) {
    case Compression::kNone:
      return "none";
    case Compression::kZstd:
      return "zstd";
  }
  return "none";
}

Result<RepositoryConfig> parse_repository_config(std::string_view text) {
  nlohmann::json object;
  if (json_depth(text) <= kMaxJsonDepth) {
    object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  }
  if (!object.is_object()) {
    return bad_config("not a JSON object with the members of a repository");
  }
  RepositoryConfig config;
  std::string compression = "none";
  std::string key_file;
  const std::map<std::string, std::string*, std::less<>> texts = {
      {"location", &config.location}, {"endpoint", &config.endpoint},
      {"region", &config.region},     {"caFile", &config.ca_file},
      {"keyFile", &key_file},         {"credentialsFile", &config.credentials_file},
      {"compression", &compression}};
  for (const auto& [member, value] : object.items()) {
    if (member == "pathStyle") {
      if (!value.is_boolean()) {
        return bad_config("pathStyle: neither true nor false");
      }
      config.path_style = value.get<bool>();
      continue;
    }
    const auto found = texts.find(member);
    if (found == texts.end()) {
      return bad_config(fmt::format(
          "\"{}\": no member of a repository; these are: location, endpoint, region, caFile, "
          "credentialsFile, pathStyle, compression, keyFile",
          member));
    }
    if (!value.is_string()) {
      return bad_config(fmt::format("{}: not a text", member));
    }
    *found->second = value.get<std::string>();
  }
  config.key_file = key_file;
  if (compression != "none" && compression != "zstd") {
    return bad_config(
        fmt::format("compression: \"{}\" is neither \"none\" nor \"zstd\"", compression));
  }
  config.compression = compression == "zstd" ? Compression::kZstd : Compression::kNone;
  VERGER_RETURN_IF_ERROR(check_config(config));
  if (!config.is_object_store()) {
    VERGER_RETURN_IF_ERROR(refuse_object_store_members(object));
  } else if (!object.contains("pathStyle")) {
    // Names of buckets below the name of an own server are rarely in its DNS and certificate.
    config.path_style = !config.endpoint.empty();
  }
  return config;
}

Result<RepositoryConfig> read_repository_config(FileSystem& files, const Path& file) {
  VERGER_TRY(const auto content, read_file(files, file, kLargestConfig));
  auto config = parse_repository_config(as_text(content));
  if (!config) {
    return config.error().within(file.string());
  }
  return config;
}

Result<RepositoryConfig> repository_config_of(FileSystem& files, std::string_view given) {
  if (given.starts_with(kObjectStorePrefix)) {
    RepositoryConfig config;
    config.location = given;
    config.endpoint = from_environment({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
    config.region = from_environment({"AWS_REGION", "AWS_DEFAULT_REGION"});
    config.ca_file = from_environment({"AWS_CA_BUNDLE"});
    config.path_style = !config.endpoint.empty();
    VERGER_RETURN_IF_ERROR(check_config(config));
    return config;
  }
  if (given.ends_with(".json")) {
    // A directory may be called so, too.
    if (const auto listed = files.list(Path(given)); !listed) {
      return read_repository_config(files, given);
    }
  }
  RepositoryConfig config;
  config.location = given;
  return config;
}

Result<void> refuse_inside(const RepositoryConfig& config, std::span<const Path> directories) {
  const auto plain = [](const Path& path) {
    std::error_code failed;
    auto out = std::filesystem::weakly_canonical(std::filesystem::absolute(path), failed);
    return (failed ? std::filesystem::absolute(path).lexically_normal() : out) / "";
  };
  for (const auto& directory : directories) {
    if (!config.is_object_store() &&
        plain(config.location).native().starts_with(plain(directory).native())) {
      return Error{
          Errc::kRefused,
          fmt::format("{}: this repository is in the database's directory {}: what destroys "
                      "the database would destroy its backups; name another place, best on "
                      "another machine",
                      config.location, directory.string())};
    }
  }
  return {};
}

}  // namespace verger::backup
