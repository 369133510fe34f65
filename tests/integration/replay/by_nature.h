#pragma once

#include <array>
#include <string_view>

namespace verger::testing {

/// An exchange that differs by nature, and why.
struct ByNature {
  std::string_view file;
  std::string_view title;
  std::string_view reason;
};

inline constexpr std::string_view kRedaction =
    "the event was redacted before, by gRPC, which the embedded node does not speak";
inline constexpr std::string_view kRace =
    "seen within milliseconds of a stop; here a run has ended when its stop is answered";

inline constexpr std::array kByNature = {
    ByNature{"redaction.json", "a redacted event in a feed", kRedaction},
    ByNature{"redaction.json", "a redacted event, event+json", kRedaction},
    ByNature{"redaction.json", "a redacted event, JSON", kRedaction},
    ByNature{"redaction.json", "start a scavenge while a redaction holds the chunk lock",
             kRedaction},
    ByNature{"scavenge-lifecycle.json", "current right after the stop", kRace},
    ByNature{"scavenge-lifecycle.json", "start at once after stop reply", kRace},
    ByNature{"scavenge-lifecycle.json", "stop current, JSON", kRace},
};

/// Whole files, or the rest of one, that hold no HTTP exchanges.
struct NotHttp {
  std::string_view file;
  std::size_t elements;
  std::string_view reason;
};
inline constexpr std::array kNotHttp = {
    NotHttp{"grpc-operations.json", 28, "gRPC calls"},
    NotHttp{"redaction.json", 9, "gRPC calls over a unix socket"},
    NotHttp{"resign.json", 11, "observations of the server's elections"},
    NotHttp{"transitions.json", 8, "observations of the server's gossip"},
    NotHttp{"certificates.json", 2, "a signal, and observations over minutes"},
};

}  // namespace verger::testing
