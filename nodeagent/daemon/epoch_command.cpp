#include "nodeagent/daemon/epoch_command.h"

#include <fmt/format.h>
#include <ostream>

#include "engine/base/exit_code.h"
#include "engine/settings/settings.h"
#include "nodeagent/operations/operation_journal.h"

namespace verger::agent {
namespace {

constexpr std::int64_t kNotGiven = -1;

}  // namespace

int run_epoch(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  settings::Settings all("verger-agent epoch",
                         "shows or repairs the newest controller epoch that a stopped agent knows");
  std::string state;
  std::int64_t wanted = kNotGiven;
  all.add("state", state, "The agent's state directory", {.prefix = "VERGER_AGENT_"});
  all.add("set", wanted,
          "The epoch from which on controllers are obeyed: vergerd's own (controller_epoch of GET "
          "/api/v1/health), or 0 for whichever comes first");
  all.set_footer(
      "No other vergerd may work on this node: an older one would be obeyed again.\n"
      "Example: systemctl stop verger-agent\n"
      "         verger-agent epoch --state /var/lib/verger/agent --set 38\n"
      "         systemctl start verger-agent");
  const auto action = all.parse(argc, argv);
  if (!action) {
    err << "verger-agent epoch: " << action.error().message << '\n';
    return kExitUsage;
  }
  if (*action == settings::Settings::Action::kHelp) {
    out << all.help();
    return kExitDone;
  }
  if (state.empty() || (all.given("set") && wanted < 0)) {
    err << "verger-agent epoch: "
        << (state.empty() ? "--state is missing: the agent's state directory"
                          : "--set takes 0 or more")
        << '\n';
    return kExitUsage;
  }
  const auto journal = Path(state) / "operations.db";
  const auto before = wanted == kNotGiven ? read_highest_epoch(posix_file_system(), journal)
                                          : set_highest_epoch(posix_file_system(), journal, wanted);
  if (!before) {
    const bool in_use = before.error().code == Errc::kRefused;
    err << "verger-agent epoch: " << before.error().message
        << (in_use ? "; stop the agent first" : "") << '\n';
    return in_use ? kExitRefused : kExitFailed;
  }
  out << (wanted == kNotGiven
              ? fmt::format("the newest controller epoch seen is {}\n", *before)
              : fmt::format("the newest controller epoch is {} now; it was {}\n", wanted, *before));
  return kExitDone;
}

}  // namespace verger::agent
