#pragma once

#include <string>
#include <string_view>

namespace verger::planner::detail {

/// The parts one after the other. A plan of a thousand nodes has tens of thousands of such texts.
template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string out;
  out.reserve((std::string_view(parts).size() + ...));
  (out.append(std::string_view(parts)), ...);
  return out;
}

}  // namespace verger::planner::detail
