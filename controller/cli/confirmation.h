#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "controller/cli/cli_context.h"

namespace verger::cli {

/// Asks on the terminal; true where the answer is one of `words`. Else, and without a terminal, it
/// says that nothing was touched.
bool confirmed(const CliContext& context, const std::string& question,
               std::initializer_list<std::string_view> words);

}  // namespace verger::cli
