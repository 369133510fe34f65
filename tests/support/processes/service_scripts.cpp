#include "tests/support/processes/service_scripts.h"

#include <fmt/format.h>
#include <fstream>

namespace verger::test {

void write_service_scripts(const ServiceScripts& scripts) {
  const auto pid = scripts.pid.string();
  std::ofstream start(scripts.start);
  // A process that has ended and was not waited for has no program.
  start << fmt::format(
      "if [ \"$(readlink /proc/$(cat {} 2>/dev/null || echo none)/exe)\" = \"$(readlink -f '{}')\" "
      "]\n"
      "then exit 0\nfi\n",
      pid, scripts.command.front());
  start << scripts.environment;
  for (const auto& word : scripts.command) {
    start << "'" << word << "' ";
  }
  start << fmt::format(">> {} 2>&1 &\necho $! > {}\n", scripts.log.string(), pid);
  std::ofstream(scripts.stop) << fmt::format("kill $(cat {})\n", pid);
}

}  // namespace verger::test
