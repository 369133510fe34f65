#pragma once

#include <string>
#include <string_view>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::controller {

struct Credentials {
  std::string user;
  std::string password;
};

/// Where passwords come from. They are read when needed and never journaled or logged.
class CredentialStore {
 public:
  virtual ~CredentialStore() = default;
  /// Errors: kNotFound, kInvalidArgument (a name with path parts, an unreadable file).
  virtual Result<Credentials> find(std::string_view name) = 0;
};

/// A directory of files: first line user, second line password.
class CredentialDirectory final : public CredentialStore {
 public:
  CredentialDirectory(FileSystem& files, Path directory)
      : files_(files), directory_(std::move(directory)) {}
  Result<Credentials> find(std::string_view name) override;

 private:
  FileSystem& files_;
  Path directory_;
};

}  // namespace verger::controller
