#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/result.h"

namespace verger::client {

enum class Verdict : std::uint8_t {
  kDone,     ///< the answer proves it; for a read: the value is what the node says
  kRefused,  ///< certainly not carried out
  kUnknown,  ///< it may have been carried out, or the answer proves less than it seems to
};
std::string_view to_string(Verdict verdict);

/// Nothing to carry.
struct Nothing {};

/// What is known after a call. `unknown` is left only by observing the node, never by repeating.
template <class T>
struct Outcome {
  Verdict verdict = Verdict::kUnknown;
  /// Always there with kDone. Otherwise what the answer said, where it said something (the id of a
  /// scavenge that was accepted, or that already runs).
  std::optional<T> value{};
  /// Empty with kDone; else stable, in snake case: see codes below.
  std::string code{};
  /// For a person: what, where, what it means.
  std::string why{};
  /// The node requested this wait; 0: it did not.
  std::chrono::seconds retry_after{0};
  /// A read that was answered only without our credentials: they are wrong.
  bool credentials_refused = false;

  [[nodiscard]] bool done() const { return verdict == Verdict::kDone; }
  [[nodiscard]] bool refused() const { return verdict == Verdict::kRefused; }
  [[nodiscard]] bool unknown() const { return verdict == Verdict::kUnknown; }
};

template <class T>
Outcome<T> done(T value) {
  return Outcome<T>{.verdict = Verdict::kDone, .value = std::move(value)};
}
template <class T>
Outcome<T> refused(std::string code, std::string why, std::optional<T> value = std::nullopt) {
  return Outcome<T>{.verdict = Verdict::kRefused,
                    .value = std::move(value),
                    .code = std::move(code),
                    .why = std::move(why)};
}
template <class T>
Outcome<T> unknown(std::string code, std::string why, std::optional<T> value = std::nullopt) {
  return Outcome<T>{.verdict = Verdict::kUnknown,
                    .value = std::move(value),
                    .code = std::move(code),
                    .why = std::move(why)};
}

/// As a Result, for callers that only want the value: refused becomes kRefused (kUnavailable,
/// kUnauthorized, kNotFound, kConflict, kDeleted, kInvalidArgument, kUnsupported where the code
/// says so), unknown kUnknownOutcome.
Error to_error(Verdict verdict, std::string_view code, std::string_view why);
template <class T>
Result<T> to_result(Outcome<T> outcome) {
  if (outcome.done()) {
    return *std::move(outcome.value);
  }
  return to_error(outcome.verdict, outcome.code, outcome.why);
}

/// The codes. Refused:
///   unreachable             nothing was sent
///   not_ready, too_busy     503; later (retry_after)
///   bad_credentials         401 with challenge
///   lacks_role              401 without
///   no_such_route           404 of a route that an option removed, or 405 where a version lacks it
///   not_acceptable          406, 415
///   unsupported_version     not sent: the node's version does not have it
///   invalid                 400 with a text
///   already_running         a scavenge runs; its id is in `value` where the version reports it
///   chunk_lock_held         redaction, or a scavenge that is just ending
///   wrong_expected_version, stream_deleted, not_found
///   not_installed, not_enabled, rejected        auto-scavenge
/// Unknown:
///   no_answer               sent, no whole answer
///   late                    408: the command continues
///   accepted, queued        200, but it says no more than that
///   stopping                old versions answer before the scavenge has stopped
///   nothing_to_stop         404 of a stop: nothing runs, or it is just ending
///   redirected              307; the other node may be gone
///   credentials_refused     a read of what any client may read, with a wrong password
///   write_timeout           500: it may have been written
///   server_error            500 otherwise
///   unexpected_answer       the right code with another body, or any other code
///   not_itself, stale, unsettled, no_leader_known, untouched, restarted, errored, still_open
///                           judgements of judge.h
}  // namespace verger::client
