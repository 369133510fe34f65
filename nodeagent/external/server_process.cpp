#include "nodeagent/external/server_process.h"

#include <charconv>
#include <string>
#include <string_view>

#include "engine/base/number_from_text.h"
#include "engine/log/pending_truncation.h"

namespace verger::external {
namespace {

constexpr int kFieldState = 3;
constexpr int kFieldStarted = 22;

/// A field of /proc/PID/stat, counted from 1 as its manual does. The command, the second one, may
/// hold spaces and brackets: counting begins behind its end.
std::string_view field_of(std::string_view stat, int number) {
  const auto command_ends = stat.rfind(')');
  if (command_ends == std::string_view::npos) {
    return {};
  }
  auto rest = stat.substr(command_ends + 1);
  for (int field = kFieldState; !rest.empty(); ++field) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    const auto end = std::min(rest.find_first_of(" \n"), rest.size());
    if (field == number) {
      return rest.substr(0, end);
    }
    rest.remove_prefix(end);
  }
  return {};
}

}  // namespace

std::optional<ServerProcess> process_with(std::int64_t id, const Path& proc) {
  const auto opened = posix_file_system().open(proc / std::to_string(id) / "stat", OpenMode::kRead);
  if (!opened) {
    return std::nullopt;
  }
  Bytes bytes(1024);
  const auto read = (*opened)->read_at(0, bytes);
  if (!read) {
    return std::nullopt;
  }
  const auto stat = as_text(ByteView(bytes).first(*read));
  const auto state = field_of(stat, kFieldState);
  const auto started = number_from_text<std::uint64_t>(field_of(stat, kFieldStarted));
  if (!started || state == "Z" || state == "X") {
    return std::nullopt;
  }
  return ServerProcess{.id = id, .started = *started};
}

bool still_runs(const ServerProcess& process, const Path& proc) {
  return process_with(process.id, proc) == process;
}

Result<std::optional<ServerProcess>> find_server(const Path& database) {
  VERGER_TRY(const auto id, log::process_that_writes(database));
  return id ? process_with(*id) : std::nullopt;
}

}  // namespace verger::external
