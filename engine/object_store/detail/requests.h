#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/base/result.h"
#include "engine/object_store/detail/answers.h"
#include "engine/object_store/detail/http_transfer.h"

namespace verger::object_store::detail {

/// How time passes between two attempts; a test's passes at once.
using Wait = std::function<void(std::chrono::milliseconds)>;

/// A request to the bucket, or to an object of it.
struct S3Request {
  Method method = Method::kGet;
  std::string key{};  ///< below the prefix; empty: the bucket itself
  /// Sorted by name, as the signature has them; percent-encoded when they are sent.
  std::vector<std::pair<std::string, std::string>> query{};
  std::vector<std::string> headers{};
  ByteView body{};
  /// A part of the object is wanted: from `offset` on, as much as `into` has.
  MutableBytes into{};
  std::uint64_t offset = 0;
  /// Work of the server's for which it may take longer; in bytes that it copies.
  std::uint64_t server_side_bytes = 0;
  int attempts = 0;  ///< 0: as the settings say
};

struct S3Answer {
  HttpOutcome outcome;
  ServerError error{};  ///< of an answer that is none of success

  [[nodiscard]] bool is_success() const {
    return outcome.status >= 200 && outcome.status < 300 && error.code.empty();
  }
  [[nodiscard]] bool is_missing() const {
    return outcome.status == 404 && error.code != "NoSuchBucket";
  }
  [[nodiscard]] bool is_unsupported() const {
    return outcome.status == 501 || outcome.status == 405 || error.code == "NotImplemented";
  }
};

/// Requests to one bucket: addressed, signed, repeated with growing waits while that can help.
/// Safe from any thread.
class S3Requests {
 public:
  /// `random` and `log` outlive it. `wait` may be empty: the thread sleeps.
  S3Requests(S3Settings settings, Random& random, Log& log, Wait wait);

  [[nodiscard]] const S3Settings& settings() const { return settings_; }
  [[nodiscard]] Log& log() const { return log_; }
  /// "s3://bucket/prefix", for messages.
  [[nodiscard]] std::string name() const;
  /// "s3://bucket/prefix/key"
  [[nodiscard]] std::string name_of(std::string_view key) const;

  /// An answer of success; `found_out` may say before an attempt is repeated that the lost one was
  /// done. Errors: kUnavailable (after all attempts), and those of error_of().
  Result<S3Answer> send(const S3Request& request,
                        const std::function<Result<bool>()>& found_out = {});
  /// The same, but that the object is not there is an answer, too.
  Result<S3Answer> send_if_there(const S3Request& request);

  /// The same, but that the server does not know the request is an answer, too.
  Result<S3Answer> send_if_supported(const S3Request& request);

  /// What an answer without success means, with what to do. Errors: kNotFound, kUnauthorized,
  /// kNoSpace, kInvalidArgument (no such bucket, wrong region), kIo.
  [[nodiscard]] Error error_of(const S3Request& request, const S3Answer& answer) const;

 private:
  [[nodiscard]] std::string url_of(const S3Request& request) const;
  [[nodiscard]] HttpRequest signed_request(const S3Request& request, std::size_t received) const;
  [[nodiscard]] std::chrono::milliseconds wait_before(int attempt, const S3Answer& last);
  /// Error: kCancelled, once RetryRules::stopped says so.
  Result<void> wait_for(const S3Request& request, std::chrono::milliseconds time);
  Result<S3Answer> attempt_until_done(const S3Request& request,
                                      const std::function<Result<bool>()>& found_out);

  S3Settings settings_;
  Random& random_;
  Log& log_;
  Wait wait_;
  std::mutex random_mutex_;
  HttpTransfers transfers_;
};

}  // namespace verger::object_store::detail
