#pragma once

#include <string>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/external/file_access.h"

namespace verger::agent {

/// Keys that were made on the node for requests, each in a file of mode 0600 of one directory,
/// until its change is discarded; the newest kKept. One thread.
class KeyRequests {
 public:
  static constexpr std::size_t kKept = 8;

  KeyRequests(FileSystem& files, external::FileAccess& access, Clock& clock, Path directory)
      : files_(files), access_(access), clock_(clock), directory_(std::move(directory)) {}

  /// Whether the key of this change is there: without it the next call takes seconds.
  [[nodiscard]] bool has_key(const std::string& change) const;
  /// A new key, PEM, encrypted where there is a password. Takes up to seconds; touches nothing.
  /// Error: kInvalidArgument: no such type.
  static Result<std::string> make_key(const std::string& type, const std::string& password);
  /// Keeps a key for a change that has none. Errors: kNoSpace, kIo.
  Result<void> keep(const std::string& change, const std::string& key);
  /// A request for a certificate, PEM, signed by the key of the change. Errors: kNotFound: it has
  /// none; kConflict: it is of another type than is wanted now; kInvalidArgument: the names.
  [[nodiscard]] Result<std::string> request(const api::CertificateKeyRequest& asked,
                                            const std::string& type,
                                            const std::string& password) const;
  /// Error: kNotFound.
  [[nodiscard]] Result<std::string> key(const std::string& change) const;
  /// Nothing happens where there is none.
  Result<void> drop(const std::string& change);

 private:
  /// Of the key of a change: "<SHA-256 of the change>.<second it was made>.key"; empty: none.
  [[nodiscard]] Path path_of(const std::string& change) const;
  void drop_oldest();

  FileSystem& files_;
  external::FileAccess& access_;
  Clock& clock_;
  Path directory_;
};

}  // namespace verger::agent
