#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace verger::planner::detail {

/// The parts one after the other. A plan of a thousand nodes has tens of thousands of such texts.
template <class... Parts>
std::string joined(const Parts&... parts) {
  std::string out;
  out.reserve((std::string_view(parts).size() + ...));
  (out.append(std::string_view(parts)), ...);
  return out;
}

/// Names with commas between and blanks around them, each once.
inline std::vector<std::string> listed_names(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    auto part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    part = part.substr(0, part.find_last_not_of(' ') + 1);
    if (!part.empty() && std::ranges::find(out, part) == out.end()) {
      out.emplace_back(part);
    }
  }
  return out;
}

}  // namespace verger::planner::detail
