#include "engine/base/roff.h"

namespace verger {

std::string roff_escaped(std::string_view text) {
  std::string result;
  bool line_start = true;
  for (const char letter : text) {
    if (line_start && (letter == '.' || letter == '\'')) {
      result += "\\&";
    }
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else {
      result += letter;
    }
    line_start = letter == '\n';
  }
  return result;
}

}  // namespace verger
