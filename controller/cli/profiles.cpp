#include "controller/cli/profiles.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ranges>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "engine/base/directories.h"
#include "engine/base/private_file.h"

namespace verger::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t kProfilesBytes = 1U << 20U;
constexpr std::size_t kLongestProfileName = 100;

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): it is not changed
  return value == nullptr ? std::string() : std::string(value);
}

/// A name is a part of file names.
Result<void> check_profile_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= kLongestProfileName && name.front() != '.' &&
                    std::ranges::all_of(name, [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
                    });
  return good ? Result<void>()
              : Error{Errc::kInvalidArgument,
                      fmt::format("\"{}\": a profile's name has letters, digits, - _ and . alone",
                                  name)};
}

}  // namespace

std::optional<Path> Profiles::directory_of_environment() {
  if (const auto config = variable("XDG_CONFIG_HOME"); !config.empty()) {
    return Path(config) / "verger";
  }
  const auto home = variable("HOME");
  return home.empty() ? std::nullopt : std::optional(Path(home) / ".config" / "verger");
}

Path Profiles::token_file_of(const std::string& name) const {
  return directory_ / (name + ".token");
}
Path Profiles::root_file_of(const std::string& name) const {
  return directory_ / (name + "-ca.pem");
}

Result<Profiles> Profiles::load(Path directory) {
  Profiles out(std::move(directory));
  const auto file = out.directory_ / "profiles.json";
  const auto bytes = read_file(posix_file_system(), file, kProfilesBytes);
  if (!bytes) {
    return bytes.error().code == Errc::kNotFound ? Result<Profiles>(std::move(out)) : bytes.error();
  }
  const auto stored = json::parse(as_text(*bytes), nullptr, false);
  if (!stored.is_object() || !stored.value("profiles", json()).is_object()) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("{}: not a list of profiles; remove it and log in again", file.string())};
  }
  out.current_ = text_of(stored, "current");
  for (const auto& [name, each] : stored.at("profiles").items()) {
    Profile profile{.controllers = {},
                    .ca_file = text_of(each, "ca_file"),
                    .token_file = text_of(each, "token_file")};
    for (const auto& url : list_of(each, "controllers")) {
      if (url.is_string()) {
        profile.controllers.push_back(url.get<std::string>());
      }
    }
    out.profiles_.emplace(name, std::move(profile));
  }
  return out;
}

Result<Profile> Profiles::find(std::string_view name) const {
  const auto found = profiles_.find(std::string(name));
  if (found == profiles_.end()) {
    return Error{Errc::kNotFound,
                 profiles_.empty()
                     ? fmt::format("there is no profile {}; make one with: verger login URL", name)
                     : fmt::format("there is no profile {}, but: {}", name,
                                   fmt::join(profiles_ | std::views::keys, ", "))};
  }
  return found->second;
}

Result<void> Profiles::log_in(const std::string& name, Profile profile, const std::string& token,
                              const std::string& root) {
  VERGER_RETURN_IF_ERROR(check_profile_name(name));
  VERGER_RETURN_IF_ERROR(make_directories_durably(posix_file_system(), directory_));
  std::error_code ignored;  // the files in it have a mode of their own
  fs::permissions(directory_, fs::perms::owner_all, ignored);
  if (!root.empty()) {
    VERGER_RETURN_IF_ERROR(
        write_file_durably(posix_file_system(), root_file_of(name), as_bytes(root)));
    profile.ca_file = root_file_of(name).string();
  }
  VERGER_RETURN_IF_ERROR(write_private_file(token_file_of(name), token + '\n', IfThere::kReplace));
  profile.token_file = token_file_of(name).string();
  profiles_[name] = std::move(profile);
  current_ = name;
  return write();
}

Result<void> Profiles::use(const std::string& name) {
  VERGER_TRY(const auto found, find(name));
  static_cast<void>(found);
  current_ = name;
  return write();
}

Result<void> Profiles::remove(const std::string& name) {
  VERGER_TRY(const auto found, find(name));
  profiles_.erase(name);
  if (current_ == name) {
    current_.clear();
  }
  VERGER_RETURN_IF_ERROR(write());
  // Only what a login made: other files are the operator's.
  for (const auto& file : {token_file_of(name), root_file_of(name)}) {
    if (found.token_file == file.string() || found.ca_file == file.string()) {
      VERGER_RETURN_IF_ERROR(posix_file_system().remove(file));
    }
  }
  return {};
}

Result<void> Profiles::write() const {
  auto profiles = json::object();
  for (const auto& [name, each] : profiles_) {
    profiles[name] = json{{"controllers", each.controllers},
                          {"ca_file", each.ca_file},
                          {"token_file", each.token_file}};
  }
  const json out{{"current", current_}, {"profiles", std::move(profiles)}};
  return write_private_file(directory_ / "profiles.json", out.dump(2) + '\n', IfThere::kReplace);
}

}  // namespace verger::cli
