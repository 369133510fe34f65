#include "tests/support/processes/process_figures.h"

#include <fmt/format.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unistd.h>

#include "tests/support/processes/process.h"

namespace verger::test {
namespace {

std::string text_of(pid_t process, const char* file) {
  auto text = file_text(fmt::format("/proc/{}/{}", process, file));
  if (text.empty()) {
    throw std::runtime_error(fmt::format("process {} is gone", process));
  }
  return text;
}

/// The number behind "name:" at the beginning of a line.
std::int64_t number_behind(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":")) {
      return std::stoll(line.substr(name.size() + 1));
    }
  }
  throw std::runtime_error("no " + name + " in: " + text);
}

}  // namespace

double cpu_seconds(pid_t process) {
  const auto text = text_of(process, "stat");
  // The name, in parentheses, may hold blanks; user time is the twelfth number behind it.
  std::istringstream rest(text.substr(text.rfind(')') + 2));
  std::string ignored;
  for (int i = 0; i < 11; ++i) {
    rest >> ignored;
  }
  std::int64_t user = 0;
  std::int64_t system = 0;
  rest >> user >> system;
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double resident_mib(pid_t process) {
  return static_cast<double>(number_behind(text_of(process, "status"), "VmRSS")) / 1024;
}

double peak_resident_mib(pid_t process) {
  return static_cast<double>(number_behind(text_of(process, "status"), "VmHWM")) / 1024;
}

BytesRead bytes_read(pid_t process) {
  const auto text = text_of(process, "io");
  return {.asked = number_behind(text, "rchar"), .from_disk = number_behind(text, "read_bytes")};
}

}  // namespace verger::test
