#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/settings/settings.h"

namespace verger::settings {

/// What a daemon was started for.
enum class DaemonTask : std::uint8_t {
  kRun,
  kVersion,       ///< version
  kCheckConfig,   ///< config check: read the options, open nothing
  kShowDefaults,  ///< config defaults: an annotated file
  kManual,        ///< man DIR
};

struct DaemonCall {
  DaemonTask task = DaemonTask::kRun;
  std::string directory{};               ///< of kManual
  std::vector<std::string> arguments{};  ///< the options behind these words
};

/// The words before a daemon's options. Error: kInvalidArgument, a word is missing.
Result<DaemonCall> daemon_call(int argc, const char* const* argv);

/// The commands above, for Settings::set_commands().
std::vector<ProgramCommand> daemon_commands();

/// kManual: writes PROGRAM.8 into the directory, which is made when missing. Errors: kIo, kNoSpace.
Result<void> write_manual(const Settings& all, std::string_view program,
                          const std::string& directory);

/// kShowDefaults, of the options in `arguments`; the environment does not count. Errors: those of
/// Settings::parse().
Result<std::string> defaults_of(Settings& all, const std::vector<std::string>& arguments,
                                std::string_view program);

/// kCheckConfig: what was read, for the operator: each option that is not a default, and where it
/// comes from.
std::string checked_text(const Settings& all);

}  // namespace verger::settings
