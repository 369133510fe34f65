#include "engine/base/result.h"

#include <cstdio>
#include <cstdlib>

#include "engine/base/assert.h"

namespace verger {

std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return "invalid_argument";
    case Errc::kNotFound:
      return "not_found";
    case Errc::kExists:
      return "exists";
    case Errc::kConflict:
      return "conflict";
    case Errc::kCorruption:
      return "corruption";
    case Errc::kUnsupported:
      return "unsupported";
    case Errc::kNoSpace:
      return "no_space";
    case Errc::kIo:
      return "io";
    case Errc::kUnavailable:
      return "unavailable";
    case Errc::kUnauthorized:
      return "unauthorized";
    case Errc::kTimeout:
      return "timeout";
    case Errc::kCancelled:
      return "cancelled";
    case Errc::kRefused:
      return "refused";
    case Errc::kDeleted:
      return "deleted";
    case Errc::kUnknownOutcome:
      return "unknown_outcome";
  }
  return "unknown";
}

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace verger
