#pragma once

#include <iosfwd>

#include "engine/settings/settings.h"

namespace verger::controller {

/// `vergerd init`: prepares a data directory and a configuration for the first start: directories,
/// the authority, the API's certificate or a look at the given one, the first admin's token, the
/// configuration file. What is there is never replaced, but for a configuration file that has
/// nothing but defaults; where one says something else, nothing at all is made. The exit code.
/// `argv`: from "init" on.
int run_init(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

/// Of the help and the manual page of vergerd.
settings::ProgramCommand init_command();

}  // namespace verger::controller
