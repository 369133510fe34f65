#include "engine/settings/daemon_call.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/file_system.h"

namespace verger::settings {
namespace {

Error usage(std::string text) { return {Errc::kInvalidArgument, std::move(text)}; }

}  // namespace

Result<DaemonCall> daemon_call(int argc, const char* const* argv) {
  DaemonCall call{.arguments = {argv + std::min(argc, 1), argv + argc}};
  const auto word = [&](std::size_t index) {
    return index < call.arguments.size() ? call.arguments[index] : std::string();
  };
  const auto first = word(0);
  std::ptrdiff_t used = 0;
  if (first == "version") {
    call.task = DaemonTask::kVersion;
    used = 1;
  } else if (first == "config") {
    used = 2;
    if (word(1) == "check") {
      call.task = DaemonTask::kCheckConfig;
    } else if (word(1) == "defaults") {
      call.task = DaemonTask::kShowDefaults;
    } else {
      return usage("config takes check or defaults");
    }
  } else if (first == "man") {
    call.task = DaemonTask::kManual;
    call.directory = word(1);
    used = 2;
    if (call.directory.empty()) {
      return usage("man takes the directory to write the manual page to");
    }
  }
  call.arguments.erase(call.arguments.begin(), call.arguments.begin() + used);
  return call;
}

std::vector<ProgramCommand> daemon_commands() {
  return {
      {"config check [--config FILE] [--OPTION VALUE] ...",
       "Reads options and certificates as a start does, and opens nothing: shows what is not a "
       "default, or what is wrong (exit code 64)"},
      {"config defaults [--OPTION VALUE] ...",
       "An annotated file with all options on standard output; what is given here is set in it"},
      {"man DIR", "Writes the manual page"},
      {"version", "Shows the version"}};
}

Result<void> write_manual(const Settings& all, std::string_view program,
                          const std::string& directory) {
  VERGER_RETURN_IF_ERROR(posix_file_system().make_directories(directory));
  return write_file_durably(posix_file_system(), Path(directory) / fmt::format("{}.8", program),
                            as_bytes(all.manual_page()));
}

Result<std::string> defaults_of(Settings& all, const std::vector<std::string>& arguments,
                                std::string_view program) {
  VERGER_TRY(const auto action, all.parse(arguments, {}));
  return action == Settings::Action::kHelp
             ? all.help()
             : all.annotated_file(fmt::format(
                   "Configuration of {0}. Lines without '#' are set; all others show the "
                   "default.\nCheck it with: {0} config check --config FILE\nA flag or environment "
                   "variable overrides this file ({0} --help).",
                   program));
}

std::string checked_text(const Settings& all) {
  std::string out;
  for (const auto& option : all.effective()) {
    if (option.source != Source::kDefault && option.name != "Config") {
      out += fmt::format("{} = {}   ({})\n", option.name, option.value, option.where);
    }
  }
  for (const auto& warning : all.warnings()) {
    out += fmt::format("warning: {}\n", warning);
  }
  return out + "The configuration is valid.\n";
}

}  // namespace verger::settings
