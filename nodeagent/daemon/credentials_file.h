#pragma once

#include <memory>
#include <string>

#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "nodeagent/client/node_client.h"

namespace verger::agent {

/// The user of the node and its password, from a file: user on the first line, password on the
/// second. A change of the file counts from the next look() on; what cannot be read leaves the
/// former ones. One thread.
class CredentialsFile {
 public:
  /// Errors: those of reading; kInvalidArgument.
  static Result<std::unique_ptr<CredentialsFile>> open(Path path, FileSystem& files, Log& log);

  void look();
  /// Always the same object; what it has changes.
  [[nodiscard]] client::SharedCredentials current() const { return current_; }
  /// What an operator should correct: who may read the file, or why a change of it does not count.
  [[nodiscard]] std::string warning() const;

 private:
  CredentialsFile(Path path, FileSystem& files, Log& log);
  Result<client::Credentials> read() const;
  void look_who_may_read();

  Path path_;
  FileSystem& files_;
  Log& log_;
  std::shared_ptr<client::Credentials> current_;
  std::string exposed_;
  std::string unreadable_;
};

}  // namespace verger::agent
