#include "controller/cli/confirmation.h"

#include <algorithm>
#include <iostream>
#include <ostream>
#include <unistd.h>

namespace verger::cli {

bool confirmed(const CliContext& context, const std::string& question,
               std::initializer_list<std::string_view> words) {
  if (::isatty(STDIN_FILENO) == 0) {
    context.err << "verger: not confirmed, and nothing was touched: there is no terminal to ask; "
                   "give --yes\n";
    return false;
  }
  context.err << question << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  if (std::ranges::find(words, answer) != words.end()) {
    return true;
  }
  context.err << "verger: not confirmed, and nothing was touched\n";
  return false;
}

}  // namespace verger::cli
