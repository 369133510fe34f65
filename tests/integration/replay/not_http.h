#pragma once

#include <array>
#include <string_view>

namespace verger::testing {

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
