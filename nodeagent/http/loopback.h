#pragma once

#include <string_view>

namespace verger::http {

/// "localhost", 127.0.0.0/8, ::1 (also in brackets). A name that merely resolves to one of them is
/// not: nothing guarantees that it still will. A program without TLS and authentication neither
/// listens on nor talks to anything else.
bool is_loopback(std::string_view host);

}  // namespace verger::http
