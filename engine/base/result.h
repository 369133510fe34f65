#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace verger {

/// What a caller can act on. A code exists only where some caller behaves differently because of
/// it; everything else is in the message.
enum class Errc : std::uint8_t {
  kInvalidArgument,  ///< the caller's input is wrong; repeating it is useless
  kNotFound,         ///< the requested thing is not there
  kExists,           ///< the thing to be made is already there
  kConflict,         ///< another was faster, or an expectation (version, hash) does not hold
  kCorruption,       ///< bytes on disk or wire are not what their format promises
  kUnsupported,      ///< a newer or foreign format, or something Verger refuses to handle
  kNoSpace,          ///< the disk is full
  kIo,               ///< any other failure of the disk or the operating system
  kUnavailable,      ///< the peer cannot be reached or is not ready; trying later is right
  kUnauthorized,     ///< credentials are missing, wrong, or lack a role
  kTimeout,          ///< no answer before the deadline, and nothing was sent that acts
  kCancelled,        ///< stopped on request
  kRefused,          ///< a gate, a lock or a newer epoch forbids it
  kDeleted,          ///< the stream is deleted for good
  kUnknownOutcome,   ///< it may or may not have been done: find out, do not repeat blindly
};

/// Lower-case name, for example "not_found".
std::string_view to_string(Errc code);

/// A failure that the program expects. `message` says what failed, on which object, for a person.
struct Error {
  Errc code;
  std::string message;

  /// The same error with "`context`: " in front of its message.
  [[nodiscard]] Error within(std::string_view context) const {
    return Error{code, std::string(context) + ": " + message};
  }
  friend bool operator==(const Error&, const Error&) = default;
};

/// A value or an Error. Not looking at it is a compile error.
template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
  Result(Error error) : std::expected<T, Error>(std::unexpect, std::move(error)) {}  // NOLINT
};

namespace detail {
template <class T>
Error take_error(Result<T>&& result) {
  return std::move(result).error();
}
}  // namespace detail

}  // namespace verger

#define VERGER_CONCAT_INNER(a, b) a##b
#define VERGER_CONCAT(a, b) VERGER_CONCAT_INNER(a, b)

/// VERGER_TRY(auto x, expression): x is the value, or the function returns the error.
#define VERGER_TRY(declaration, ...) \
  VERGER_TRY_INNER(VERGER_CONCAT(verger_try_, __LINE__), return, declaration, __VA_ARGS__)
/// VERGER_RETURN_IF_ERROR(expression): for Result<void>, or where the value does not matter.
#define VERGER_RETURN_IF_ERROR(...)                                     \
  if (auto verger_check_ = (__VA_ARGS__); !verger_check_.has_value()) { \
    return ::verger::detail::take_error(std::move(verger_check_));      \
  } else                                                                \
    static_cast<void>(0)
/// The same two inside a coroutine; the expression may hold a co_await.
#define VERGER_CO_TRY(declaration, ...) \
  VERGER_TRY_INNER(VERGER_CONCAT(verger_try_, __LINE__), co_return, declaration, __VA_ARGS__)
#define VERGER_CO_RETURN_IF_ERROR(...)                                  \
  if (auto verger_check_ = (__VA_ARGS__); !verger_check_.has_value()) { \
    co_return ::verger::detail::take_error(std::move(verger_check_));   \
  } else                                                                \
    static_cast<void>(0)

#define VERGER_TRY_INNER(name, leave, declaration, ...)  \
  auto name = (__VA_ARGS__);                             \
  if (!name.has_value()) {                               \
    leave ::verger::detail::take_error(std::move(name)); \
  }                                                      \
  declaration = *std::move(name)
