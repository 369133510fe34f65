#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace verger::settings {

/// Words in lines of at most `width`, each but the first behind `indent` spaces and `mark`.
inline std::string wrapped(std::string_view text, std::size_t indent, std::size_t width,
                           std::string_view mark = {}) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const auto space = std::min(text.find(' '), text.size());
    const auto word = text.substr(0, space);
    if (column > indent && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      out += mark;
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return out;
}

}  // namespace verger::settings
