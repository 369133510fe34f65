#pragma once

#include <map>
#include <string>

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// The manual pages of a program and all its commands, by file name ("verger-db-info.1"), in roff:
/// made from the same text as `--help`.
std::map<std::string, std::string> man_pages(const CLI::App& program);

/// `verger-db man DIR`: writes them.
void add_man_command(CLI::App& program, Action& chosen);

}  // namespace verger::tool
