#include "engine/object_store/s3_settings.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "engine/base/database_files.h"
#include "engine/base/private_file.h"

namespace verger::object_store {
namespace {

constexpr std::uint64_t kLargestCredentials = 64U << 10U;
constexpr std::string_view kLocationStart = "s3://";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// The lines "name = value" that count, into `credentials`.
void read_lines(std::string_view text, Credentials& credentials) {
  bool counts = true;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('[')) {
      counts = line == "[default]";
      continue;
    }
    const auto equals = line.find('=');
    if (!counts || equals == std::string_view::npos || line.starts_with('#')) {
      continue;
    }
    const auto name = trimmed(line.substr(0, equals));
    const std::string value(trimmed(line.substr(equals + 1)));
    if (name == "aws_access_key_id") {
      credentials.access_key = value;
    } else if (name == "aws_secret_access_key") {
      credentials.secret_key = value;
    } else if (name == "aws_session_token") {
      credentials.session_token = value;
    }
  }
}

std::string environment_text(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing changes it
  return value == nullptr ? "" : value;
}

/// Keys are sent as they are: nothing in them has to be written in another way in a URL.
Result<std::string> prefix_of(std::string_view rest) {
  std::string prefix;
  while (!rest.empty()) {
    const auto part = rest.substr(0, rest.find('/'));
    const bool plain = std::ranges::all_of(part, [](char letter) {
      return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
             (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' || letter == '_';
    });
    if (part.empty() || part == "." || part == ".." || !plain) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("location: \"{}\" is no part of a prefix: give letters, digits, "
                               "'-', '.', '_'",
                               part)};
    }
    prefix += fmt::format("{}/", part);
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
  }
  return prefix;
}

}  // namespace

Result<Credentials> read_credentials(FileSystem& files, const Path& file) {
  if (is_machine_disk(files)) {
    VERGER_RETURN_IF_ERROR(check_private_file(file));
  }
  VERGER_TRY(const auto content, read_file(files, file, kLargestCredentials));
  Credentials credentials;
  read_lines(as_text(content), credentials);
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: needs lines \"aws_access_key_id = …\" and "
                             "\"aws_secret_access_key = …\", in no section or in [default]",
                             file.string())};
  }
  return credentials;
}

Result<Credentials> credentials_of_environment() {
  Credentials credentials{.access_key = environment_text("AWS_ACCESS_KEY_ID"),
                          .secret_key = environment_text("AWS_SECRET_ACCESS_KEY"),
                          .session_token = environment_text("AWS_SESSION_TOKEN")};
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    return Error{Errc::kInvalidArgument,
                 "no credentials for the object storage: set AWS_ACCESS_KEY_ID and "
                 "AWS_SECRET_ACCESS_KEY, or give credentialsFile in a repository file"};
  }
  return credentials;
}

Result<S3Settings> s3_settings_of(FileSystem& files, const backup::RepositoryConfig& config) {
  S3Settings settings;
  auto rest = std::string_view(config.location);
  rest.remove_prefix(std::min(kLocationStart.size(), rest.size()));
  settings.bucket = rest.substr(0, rest.find('/'));
  rest.remove_prefix(std::min(settings.bucket.size() + 1, rest.size()));
  VERGER_TRY(settings.prefix, prefix_of(rest));
  if (!config.region.empty()) {
    settings.region = config.region;
  }
  settings.endpoint = config.endpoint.empty()
                          ? fmt::format("https://s3.{}.amazonaws.com", settings.region)
                          : config.endpoint;
  while (settings.endpoint.ends_with('/')) {
    settings.endpoint.pop_back();
  }
  settings.ca_file = config.ca_file;
  settings.path_style = config.path_style;
  VERGER_TRY(settings.credentials, config.credentials_file.empty()
                                       ? credentials_of_environment()
                                       : read_credentials(files, config.credentials_file));
  return settings;
}

}  // namespace verger::object_store
