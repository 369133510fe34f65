#include "nodeagent/operations/backup/repositories.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/repositories/open_store.h"

namespace verger::agent {
namespace {

constexpr std::string_view kSuffix = ".json";

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

bool is_repository_name(std::string_view name) {
  return !name.empty() && name.front() != '.' && std::ranges::all_of(name, is_name_character);
}

Error no_repositories() {
  return {Errc::kNotFound, "this agent keeps no backups (--backup-repositories)"};
}

std::string OpenRepository::id() const {
  return repository.id().is_zero() ? std::string() : repository.id().to_string();
}

Result<Path> Repositories::file_of(std::string_view name) const {
  if (!is_repository_name(name)) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("\"{}\" is not the name of a repository: letters, digits, '-', '_' "
                             "and '.' are",
                             name)};
  }
  return access_->repositories / (std::string(name) + std::string(kSuffix));
}

Result<std::vector<std::string>> Repositories::names() const {
  VERGER_TRY(const auto entries, access_->files.list(access_->repositories));
  std::vector<std::string> out;
  for (const auto& entry : entries) {
    const std::string_view name = entry.name;
    if (!entry.is_directory && name.ends_with(kSuffix) &&
        is_repository_name(name.substr(0, name.size() - kSuffix.size()))) {
      out.emplace_back(name.substr(0, name.size() - kSuffix.size()));
    }
  }
  std::ranges::sort(out);
  return out;
}

Result<backup::RepositoryConfig> Repositories::config(std::string_view name) const {
  VERGER_TRY(const auto file, file_of(name));
  auto read = backup::read_repository_config(access_->files, file);
  if (!read && read.error().code == Errc::kNotFound) {
    return Error{
        Errc::kNotFound,
        fmt::format("this agent has no repository \"{}\": {} is not there", name, file.string())};
  }
  return read;
}

Result<std::unique_ptr<OpenRepository>> Repositories::open(std::string_view name,
                                                           std::string_view expected_id) const {
  return open_with(name, expected_id, backup::Repository::Create::kNo);
}

Result<std::unique_ptr<OpenRepository>> Repositories::open_or_create(
    std::string_view name, std::string_view expected_id) const {
  return open_with(name, expected_id,
                   expected_id.empty() ? backup::Repository::Create::kIfMissing
                                       : backup::Repository::Create::kNo);
}

Result<std::unique_ptr<OpenRepository>> Repositories::open_with(
    std::string_view name, std::string_view expected_id, backup::Repository::Create create) const {
  VERGER_TRY(auto settings, config(name));
  const auto here = [&](const Error& error) {
    return error.within(fmt::format("repository \"{}\"", name));
  };
  if (!settings.is_object_store()) {
    // A mount point without its file system must not become a new repository on the machine's disk.
    const auto there = access_->files.exists(settings.location);
    if (!there) {
      return here(there.error());
    }
    if (!*there) {
      return here(Error{Errc::kUnavailable,
                        fmt::format("the directory {} is not there: mount its file system, or "
                                    "create the directory where the repository is to be a new one",
                                    settings.location)});
    }
  }
  auto store =
      backup::open_store(access_->files, settings, access_->clock, access_->random, access_->log);
  if (!store) {
    // Only a repository itself is "not there yet": a missing key is something else.
    const auto code =
        store.error().code == Errc::kNotFound ? Errc::kUnavailable : store.error().code;
    return here(Error{code, store.error().message});
  }
  auto opened = backup::Repository::open(**store, create, access_->random);
  if (!opened && opened.error().code == Errc::kNotFound && !expected_id.empty()) {
    return here(Error{Errc::kRefused,
                      fmt::format("nothing is stored in {}, and the repository {} was expected "
                                  "there: is another file system mounted?",
                                  settings.location, expected_id)});
  }
  if (!opened) {
    return here(opened.error());
  }
  auto out = std::make_unique<OpenRepository>(OpenRepository{.name = std::string(name),
                                                             .config = std::move(settings),
                                                             .store = *std::move(store),
                                                             .repository = *std::move(opened)});
  if (!expected_id.empty() && out->id() != expected_id) {
    return here(Error{Errc::kRefused,
                      fmt::format("{} is the repository {}, and {} was expected: agents that "
                                  "share a name have to mean the same repository",
                                  out->config.location, out->id(), expected_id)});
  }
  return out;
}

}  // namespace verger::agent
