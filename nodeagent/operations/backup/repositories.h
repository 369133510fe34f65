#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backup/repository.h"
#include "engine/backup/repository_config.h"
#include "nodeagent/operations/backup/backup_access.h"

namespace verger::agent {

/// A repository that is open. One thread at a time.
struct OpenRepository {
  std::string name;
  backup::RepositoryConfig config;
  std::unique_ptr<backup::BlobStore> store;
  backup::Repository repository;

  /// As api::BackupRepository has it; empty: it has none yet.
  [[nodiscard]] std::string id() const;
};

/// The agent's repositories, by the names that its configuration gives them. Everything here may
/// block for long: it is called by jobs on BackupAccess::jobs, never on the agent's executor. Safe
/// from any thread.
class Repositories {
 public:
  explicit Repositories(std::shared_ptr<const BackupAccess> access) : access_(std::move(access)) {}
  [[nodiscard]] const BackupAccess& access() const { return *access_; }

  /// Sorted. Errors: those of listing the directory.
  [[nodiscard]] Result<std::vector<std::string>> names() const;
  /// Errors: kNotFound (no such name), kInvalidArgument (naming file and member).
  [[nodiscard]] Result<backup::RepositoryConfig> config(std::string_view name) const;
  /// The repository that is there. `expected_id`: where it is not empty and the repository has
  /// another id, kRefused. Errors: config()'s; kNotFound (nothing was stored there yet);
  /// kUnavailable (a directory that is not there, as where its file system is not mounted);
  /// those of the store.
  [[nodiscard]] Result<std::unique_ptr<OpenRepository>> open(std::string_view name,
                                                             std::string_view expected_id) const;
  /// The same; one that is not there yet is created, in a directory that is there. Not where an id
  /// is expected.
  [[nodiscard]] Result<std::unique_ptr<OpenRepository>> open_or_create(
      std::string_view name, std::string_view expected_id) const;

 private:
  [[nodiscard]] Result<std::unique_ptr<OpenRepository>> open_with(
      std::string_view name, std::string_view expected_id, backup::Repository::Create create) const;
  /// Without a slash, or what else would lead out of the directory.
  [[nodiscard]] Result<Path> file_of(std::string_view name) const;

  std::shared_ptr<const BackupAccess> access_;
};

/// The answer of an agent that is configured without any.
Error no_repositories();

/// Letters, digits, '-', '_' and '.', not at the beginning.
bool is_repository_name(std::string_view name);

}  // namespace verger::agent
