#pragma once

#include <cstdint>
#include <string_view>

namespace verger::controller {

/// Each may do what those before it may.
enum class ApiRole : std::uint8_t { kNobody, kViewer, kOperator, kAdmin };
std::string_view to_string(ApiRole role);

}  // namespace verger::controller
