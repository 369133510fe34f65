#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace verger {

/// Of `choices` the one that comes nearest to `text`, for "did you mean"; empty when none is near.
std::string nearest_name(std::string_view text, const std::vector<std::string>& choices);

}  // namespace verger
