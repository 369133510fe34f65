#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/backup/repository_config.h"
#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::object_store {

struct Credentials {
  std::string access_key{};
  std::string secret_key{};
  std::string session_token{};  ///< empty: none, as of a permanent key
};

/// The section "default" of a file as the AWS tools have it, or what precedes all sections. Errors:
/// kNotFound, kIo, kRefused (others than its owner may read it), kInvalidArgument.
Result<Credentials> read_credentials(FileSystem& files, const Path& file);
/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN. Error: kInvalidArgument.
Result<Credentials> credentials_of_environment();

/// How often what may pass is tried: a server that is busy or away, a connection that is cut.
struct RetryRules {
  int attempts = 8;
  /// Doubled each time, up to the longest; of each wait the second half is by chance.
  std::chrono::milliseconds first_wait{250};
  std::chrono::milliseconds longest_wait{16'000};
  /// Asked while it waits, from any thread; true: no further attempt is made. May be empty.
  std::function<bool()> stopped{};
};

/// A place in an S3-compatible object store, and how it is spoken to.
struct S3Settings {
  std::string bucket{};
  std::string prefix{};    ///< empty, or "a/b/" with the '/' at its end
  std::string endpoint{};  ///< "https://host[:port]"
  std::string region = "us-east-1";
  std::string ca_file{};  ///< empty: the roots of the machine
  bool path_style = false;
  Credentials credentials{};

  RetryRules retry{};
  std::chrono::milliseconds connect_timeout{10'000};
  /// For an answer; what is sent and received gets more, by its size.
  std::chrono::milliseconds answer_timeout{60'000};
  /// Content is sent in parts of this size; with more than 1,000 of them they become larger. S3
  /// takes no smaller ones than 5 MiB, but for the last.
  std::size_t part_size = 16U << 20U;
  /// One copy on the server's side; S3 takes no more than 5 GiB.
  std::uint64_t copy_size = 1ULL << 30U;
  /// Read at once, where content is read from front to back.
  std::size_t read_ahead = 8U << 20U;
  /// What all readers of a store may have read ahead together.
  std::size_t read_ahead_total = 64U << 20U;
};

/// Of a configuration whose location is s3://. Errors: kInvalidArgument, and those of the
/// credentials.
Result<S3Settings> s3_settings_of(FileSystem& files, const backup::RepositoryConfig& config);

}  // namespace verger::object_store
