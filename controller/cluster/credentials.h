#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/result.h"
#include "nodeagent/http/client.h"

namespace verger::controller {

struct Credentials {
  std::string user;
  std::string password;
  /// The hosts they were made for; they go to no other. "n1.db.example.com" is port 2113 there,
  /// "127.0.0.1:2111" another one, ":*" any; "*.db.example.com" any name with one label more.
  std::vector<std::string> hosts{};
  std::string warning{};  ///< what a person should correct where they are kept
  [[nodiscard]] bool are_for(const http::Endpoint& endpoint) const;
};

/// kUnauthorized where `credentials`, of that name, are not for `endpoint`: what to do.
Result<void> check_host(const Credentials& credentials, std::string_view name,
                        const http::Endpoint& endpoint);

/// Where passwords come from. They are read when needed and never journaled or logged.
class CredentialStore {
 public:
  virtual ~CredentialStore() = default;
  /// Errors: kNotFound, kInvalidArgument (a name with path parts, an unreadable file).
  virtual Result<Credentials> find(std::string_view name) = 0;
};

/// A directory of files, each read at most every five seconds: first line user, second line
/// password, from the third on the hosts that they are for (blanks, commas or lines between, "#"
/// begins a comment).
class CredentialDirectory final : public CredentialStore {
 public:
  /// The log has a line for each file that others can read, once until that is corrected.
  CredentialDirectory(FileSystem& files, Path directory, Log& log = null_log(),
                      Clock& clock = system_clock())
      : files_(files), directory_(std::move(directory)), log_(log), clock_(clock) {}
  Result<Credentials> find(std::string_view name) override;

 private:
  Result<Credentials> read(std::string_view name);

  FileSystem& files_;
  Path directory_;
  Log& log_;
  Clock& clock_;
  struct Read {
    Credentials credentials;
    Monotonic at{};
  };
  std::map<std::string, Read, std::less<>> read_;  ///< what could not be read is read again
  std::set<std::string, std::less<>> warned_of_;
};

}  // namespace verger::controller
