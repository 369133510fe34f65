#pragma once

#include <iosfwd>

namespace verger::agent {

/// The command `verger-agent enrol`: makes a key, has a controller sign its certificate for a
/// one-time token, and stores both with the controller's authority in the agent's state directory.
/// `argv` begins with "enrol". Exit codes: 0; 1 failed; 2 refused; 4 the answer was lost; 64 usage.
int run_enrol(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace verger::agent
