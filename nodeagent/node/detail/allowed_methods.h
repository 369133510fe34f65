#pragma once

#include <string_view>

/// The methods that a route names in Access-Control-Allow-Methods, as the server lists them, with
/// its repetitions (node-interface.md §1.2).
namespace verger::node::methods {

inline constexpr std::string_view kGet = "GET, OPTIONS";
inline constexpr std::string_view kGetTwice = "GET, GET, OPTIONS";
inline constexpr std::string_view kPost = "POST, OPTIONS";
inline constexpr std::string_view kStream = "POST, DELETE, GET, OPTIONS";
inline constexpr std::string_view kIncoming = "GET, POST, OPTIONS";
inline constexpr std::string_view kMetadata = "GET, POST, GET, OPTIONS";

}  // namespace verger::node::methods
