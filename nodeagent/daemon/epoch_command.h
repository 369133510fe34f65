#pragma once

#include <iosfwd>

namespace verger::agent {

/// `verger-agent epoch`: shows, or with --set repairs, the newest controller epoch that a stopped
/// agent knows (docs/operations/security.md). `argv[0]` is "epoch". The exit code.
int run_epoch(int argc, const char* const* argv, std::ostream& out, std::ostream& err);

}  // namespace verger::agent
