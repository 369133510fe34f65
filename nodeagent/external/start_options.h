#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::external {

/// With what a process was started.
struct StartOptions {
  std::vector<std::string> arguments{};    ///< without the program
  std::vector<std::string> environment{};  ///< "NAME=value"
  Path directory{};                        ///< its working directory
  Path program{};                          ///< its executable file; empty: not known
};

/// Of a process that runs. Error: kRefused: it may not be seen.
Result<StartOptions> start_options_of(std::int64_t process, const Path& proc = "/proc");

/// What the process was given for an option, which counts more than a configuration file:
/// "--cluster-size 3" or "EVENTSTORE_CLUSTER_SIZE=3"; empty: nothing. `option`: "cluster-size".
std::string given_at_start(const StartOptions& options, std::string_view option);
/// The configuration file that it was given ("--config", EVENTSTORE_CONFIG); empty: none, so that
/// it reads that of its default place.
Path config_file_given(const StartOptions& options);
/// Where the server is installed: of its executable, or of what "dotnet" was given to run; empty:
/// not known.
Path application_directory(const StartOptions& options);

}  // namespace verger::external
