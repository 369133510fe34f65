#include "engine/object_store/detail/requests.h"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

#include "engine/base/digest.h"
#include "engine/base/number_from_text.h"

namespace verger::object_store::detail {
namespace {

using std::chrono::milliseconds;

/// The slowest transfer that is waited for.
constexpr std::uint64_t kSlowestBytesPerSecond = 64U << 10U;
/// The slowest copy on the server's side.
constexpr std::uint64_t kSlowestCopyPerSecond = 4U << 20U;

/// As a signature has it: all but letters, digits and "-._~" as %XX.
std::string percent_encoded(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '-' || letter == '.' ||
                       letter == '_' || letter == '~';
    result +=
        plain ? std::string(1, letter) : fmt::format("%{:02X}", static_cast<unsigned char>(letter));
  }
  return result;
}

/// Between two looks whether a wait is to end.
constexpr milliseconds kStopLook{100};

/// Something that another attempt may not meet.
bool may_pass(const S3Answer& answer) {
  if (answer.outcome.failure != HttpOutcome::Failure::kNone) {
    return answer.outcome.failure == HttpOutcome::Failure::kPassing;
  }
  const auto status = answer.outcome.status;
  const auto& code = answer.error.code;
  return status == 429 || status == 500 || status == 502 || status == 503 || status == 504 ||
         code == "InternalError" || code == "SlowDown" || code == "ServiceUnavailable" ||
         code == "RequestTimeout" || code == "BadDigest" || code == "XAmzContentSHA256Mismatch";
}

std::string problem_of(const S3Answer& answer) {
  if (answer.outcome.failure != HttpOutcome::Failure::kNone) {
    return answer.outcome.problem;
  }
  auto text = fmt::format("status {}", answer.outcome.status);
  if (!answer.error.code.empty()) {
    text += fmt::format(", {}", answer.error.code);
  }
  if (!answer.error.message.empty()) {
    text += fmt::format(": {}", answer.error.message);
  }
  return text;
}

}  // namespace

S3Requests::S3Requests(S3Settings settings, Random& random, Log& log, Wait wait)
    : settings_(std::move(settings)),
      random_(random),
      log_(log),
      wait_(wait ? std::move(wait) : [](milliseconds time) { std::this_thread::sleep_for(time); }),
      transfers_(settings_) {}

Result<void> S3Requests::wait_for(const S3Request& request, milliseconds time) {
  for (;;) {
    if (settings_.retry.stopped && settings_.retry.stopped()) {
      return Error{Errc::kCancelled,
                   fmt::format("{} at {}: stopped on request between two attempts",
                               name_of(request.key), settings_.endpoint)};
    }
    if (time <= milliseconds(0)) {
      return {};
    }
    const auto part = settings_.retry.stopped ? std::min(time, kStopLook) : time;
    wait_(part);
    time -= part;
  }
}

std::string S3Requests::name() const {
  auto text = fmt::format("s3://{}/{}", settings_.bucket, settings_.prefix);
  text.pop_back();
  return text;
}

std::string S3Requests::name_of(std::string_view key) const {
  return fmt::format("s3://{}/{}{}", settings_.bucket, settings_.prefix, key);
}

std::string S3Requests::url_of(const S3Request& request) const {
  auto url = settings_.endpoint;
  const auto path = request.key.empty() ? std::string() : settings_.prefix + request.key;
  if (settings_.path_style) {
    url += fmt::format("/{}{}{}", settings_.bucket, path.empty() ? "" : "/", path);
  } else {
    const auto host = url.find("://") + 3;
    url.insert(host, settings_.bucket + ".");
    url += fmt::format("/{}", path);
  }
  char separator = '?';
  for (const auto& [name, value] : request.query) {
    // Sent with its '=' also where it has no value: so the signature has it.
    url += fmt::format("{}{}={}", separator, name, percent_encoded(value));
    separator = '&';
  }
  return url;
}

HttpRequest S3Requests::signed_request(const S3Request& request, std::size_t received) const {
  HttpRequest http{.method = request.method,
                   .url = url_of(request),
                   .headers = request.headers,
                   .body = request.body,
                   .into = request.into.subspan(received)};
  http.headers.push_back("x-amz-content-sha256: " + to_hex(sha256(request.body)));
  if (!settings_.credentials.session_token.empty()) {
    http.headers.push_back("x-amz-security-token: " + settings_.credentials.session_token);
  }
  if (!http.into.empty()) {
    const auto first = request.offset + received;
    http.headers.push_back(fmt::format("Range: bytes={}-{}", first, first + http.into.size() - 1));
  }
  const auto transfer = (request.body.size() + http.into.size()) / kSlowestBytesPerSecond +
                        request.server_side_bytes / kSlowestCopyPerSecond;
  http.timeout = settings_.answer_timeout + std::chrono::seconds(transfer);
  return http;
}

milliseconds S3Requests::wait_before(int attempt, const S3Answer& last) {
  auto wait = settings_.retry.first_wait;
  for (int i = 1; i < attempt && wait < settings_.retry.longest_wait; ++i) {
    wait *= 2;
  }
  wait = std::min(wait, settings_.retry.longest_wait);
  {
    const std::scoped_lock lock(random_mutex_);
    const auto half = static_cast<std::uint64_t>(wait.count()) / 2;
    wait = milliseconds(static_cast<std::int64_t>(half + random_.below(half + 1)));
  }
  if (const auto asked = number_from_text<std::uint32_t>(last.outcome.header("retry-after"))) {
    wait = std::min(std::max(wait, milliseconds(std::chrono::seconds(*asked))),
                    settings_.retry.longest_wait);
  }
  return wait;
}

Result<S3Answer> S3Requests::attempt_until_done(const S3Request& request,
                                                const std::function<Result<bool>()>& found_out) {
  const int attempts = request.attempts > 0 ? request.attempts : settings_.retry.attempts;
  std::size_t received = 0;
  for (int attempt = 1;; ++attempt) {
    S3Answer answer{.outcome = transfers_.perform(signed_request(request, received))};
    received += answer.outcome.received;
    const bool answered = answer.outcome.failure == HttpOutcome::Failure::kNone;
    const bool changes = request.method == Method::kPut || request.method == Method::kPost;
    if (answered && (changes || answer.outcome.status >= 300)) {
      // Copies and completed uploads may fail behind a status of success.
      answer.error = server_error_of(as_text(answer.outcome.body));
    }
    const bool whole = received == request.into.size();
    if (answered && answer.is_success() && !whole && answer.outcome.status != 206) {
      return Error{Errc::kUnsupported,
                   fmt::format("{}: the object storage sends all of an object where a part was "
                               "asked for (status {}); Verger needs range requests",
                               name_of(request.key), answer.outcome.status)};
    }
    if (answered && !may_pass(answer) && (!answer.is_success() || whole)) {
      return answer;
    }
    if (!answered && !may_pass(answer)) {
      return Error{Errc::kIo, fmt::format("{} at {}: {}", name_of(request.key), settings_.endpoint,
                                          problem_of(answer))};
    }
    if (attempt >= attempts) {
      return Error{Errc::kUnavailable,
                   fmt::format("{} at {}: {} ({}); try again later", name_of(request.key),
                               settings_.endpoint, problem_of(answer),
                               attempts == 1 ? "1 attempt" : fmt::format("{} attempts", attempts))};
    }
    const auto wait = wait_before(attempt, answer);
    log_.info("a request to the object storage is repeated",
              {{"object", name_of(request.key)},
               {"problem", problem_of(answer)},
               {"attempt", fmt::to_string(attempt)},
               {"wait_ms", fmt::to_string(wait.count())}});
    VERGER_RETURN_IF_ERROR(wait_for(request, wait));
    if (found_out) {
      VERGER_TRY(const bool done, found_out());
      if (done) {
        return S3Answer{.outcome = {.status = 200}};
      }
    }
  }
}

Result<S3Answer> S3Requests::send(const S3Request& request,
                                  const std::function<Result<bool>()>& found_out) {
  VERGER_TRY(auto answer, attempt_until_done(request, found_out));
  if (!answer.is_success()) {
    return error_of(request, answer);
  }
  return answer;
}

Result<S3Answer> S3Requests::send_if_there(const S3Request& request) {
  VERGER_TRY(auto answer, attempt_until_done(request, {}));
  if (!answer.is_success() && !answer.is_missing()) {
    return error_of(request, answer);
  }
  return answer;
}

Result<S3Answer> S3Requests::send_if_supported(const S3Request& request) {
  VERGER_TRY(auto answer, attempt_until_done(request, {}));
  if (!answer.is_success() && !answer.is_unsupported()) {
    return error_of(request, answer);
  }
  return answer;
}

Error S3Requests::error_of(const S3Request& request, const S3Answer& answer) const {
  const auto status = answer.outcome.status;
  const auto& code = answer.error.code;
  const auto object = name_of(request.key);
  const auto problem = problem_of(answer);
  if (code == "NoSuchBucket") {
    return {Errc::kInvalidArgument,
            fmt::format("{}: there is no bucket \"{}\" at {}: make it, or correct the location",
                        name(), settings_.bucket, settings_.endpoint)};
  }
  if (status == 404) {
    return {Errc::kNotFound, fmt::format("{}: is not there ({})", object, problem)};
  }
  if (status == 416) {
    return {Errc::kCorruption, fmt::format("{}: ends before the position {}", object,
                                           request.offset + request.into.size())};
  }
  if (status == 301 || status == 307 || code == "AuthorizationHeaderMalformed" ||
      code == "PermanentRedirect") {
    const auto region = answer.outcome.header("x-amz-bucket-region");
    return {Errc::kInvalidArgument,
            fmt::format("{}: the bucket is not in the region \"{}\" at {} ({}){}", name(),
                        settings_.region, settings_.endpoint, problem,
                        region.empty() ? "; correct region and endpoint"
                                       : fmt::format("; it is in \"{}\"", region))};
  }
  if (status == 401 || status == 403) {
    return {Errc::kUnauthorized,
            fmt::format("{}: the object storage at {} refuses it ({}); check the credentials, the "
                        "clock of this machine, and that they may list, read, write and delete "
                        "in the bucket",
                        object, settings_.endpoint, problem)};
  }
  if (status == 507 || code.contains("QuotaExceeded") || code.contains("StorageFull")) {
    return {Errc::kNoSpace, fmt::format("{}: the object storage is full ({})", object, problem)};
  }
  return {Errc::kIo, fmt::format("{}: the object storage at {} failed ({})", object,
                                 settings_.endpoint, problem)};
}

}  // namespace verger::object_store::detail
