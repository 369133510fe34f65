#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::external {

/// One process, distinguished from a later one with the same number.
struct ServerProcess {
  std::int64_t id = 0;
  std::uint64_t started = 0;  ///< in the kernel's ticks since its start
  friend bool operator==(const ServerProcess&, const ServerProcess&) = default;
};

/// The process that has files of `database` open for writing; nullopt: there is none. Error:
/// kRefused: that cannot be seen.
Result<std::optional<ServerProcess>> find_server(const Path& database);

/// True until the process is gone: a server closes its files some time before that. One that only
/// waits for its parent to take notice of its end is gone.
bool still_runs(const ServerProcess& process, const Path& proc = "/proc");
/// When the process with this number was started; nullopt: there is none.
std::optional<ServerProcess> process_with(std::int64_t id, const Path& proc = "/proc");

}  // namespace verger::external
