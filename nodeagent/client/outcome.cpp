#include "nodeagent/client/outcome.h"

#include <array>
#include <string_view>

namespace verger::client {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kDone:
      return "done";
    case Verdict::kRefused:
      return "refused";
    case Verdict::kUnknown:
      return "unknown";
  }
  return "unknown";
}

Error to_error(Verdict verdict, std::string_view code, std::string_view why) {
  constexpr std::array<std::pair<std::string_view, Errc>, 16> kCodes = {{
      {"unreachable", Errc::kUnavailable},
      {"not_ready", Errc::kUnavailable},
      {"too_busy", Errc::kUnavailable},
      {"chunk_lock_held", Errc::kUnavailable},
      {"bad_credentials", Errc::kUnauthorized},
      {"lacks_role", Errc::kUnauthorized},
      {"no_such_route", Errc::kUnsupported},
      {"not_acceptable", Errc::kUnsupported},
      {"unsupported_version", Errc::kUnsupported},
      {"not_installed", Errc::kUnsupported},
      {"not_enabled", Errc::kUnsupported},
      {"invalid", Errc::kInvalidArgument},
      {"already_running", Errc::kConflict},
      {"wrong_expected_version", Errc::kConflict},
      {"stream_deleted", Errc::kDeleted},
      {"not_found", Errc::kNotFound},
  }};
  Errc result = verdict == Verdict::kRefused ? Errc::kRefused : Errc::kUnknownOutcome;
  if (verdict == Verdict::kRefused) {
    for (const auto& [name, errc] : kCodes) {
      if (name == code) {
        result = errc;
      }
    }
  }
  return Error{result, std::string(why)};
}

}  // namespace verger::client
