#pragma once

#include <iosfwd>

#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/random.h"

namespace verger::online {

struct RedactProgram {
  FileSystem& files;
  Random& random;
  Log& log;
  std::ostream& out;
  std::ostream& err;
};

/// `verger-redact --db DIR --events N@STREAM,…`: redacts beside the running node that has DIR open.
/// `verger-redact man DIR`: writes its manual page.
/// The exit code: 0 redacted or nothing to do, 1 failed, 2 refused, 3 stopped, 64 wrong usage.
int run_redact_program(int argc, const char* const* argv, RedactProgram program);

}  // namespace verger::online
