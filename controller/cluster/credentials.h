#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/result.h"

namespace verger::controller {

struct Credentials {
  std::string user;
  std::string password;
  std::string warning{};  ///< what a person should mend where they are kept
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
  /// Of what is not well kept the log has a line, once for each file until it is mended.
  CredentialDirectory(FileSystem& files, Path directory, Log& log = null_log())
      : files_(files), directory_(std::move(directory)), log_(log) {}
  Result<Credentials> find(std::string_view name) override;

 private:
  FileSystem& files_;
  Path directory_;
  Log& log_;
  std::set<std::string, std::less<>> warned_of_;
};

}  // namespace verger::controller
