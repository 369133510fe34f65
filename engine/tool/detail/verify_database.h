#pragma once

#include "engine/tool/tool_context.h"
#include "engine/verify/findings.h"

namespace verger::tool {

/// How a verification works.
struct VerifyOptions {
  int threads = 1;
  Path scratch;  ///< temporary files of sorting, when there are very many events
  std::uint64_t bytes_per_second = 0;  ///< 0: no limit
};

/// Runs a VerifyDatabaseJob with progress, adds what it finds to `findings`, and prints them all
/// with a summary. The caller holds StopSignals. The exit code: kExitFailed where there is damage.
/// Errors: the directory cannot be read at all; kCancelled.
Result<int> verify_database(ToolContext& tool, const DatabaseArguments& arguments,
                            const VerifyOptions& how, verify::Findings& findings);

}  // namespace verger::tool
