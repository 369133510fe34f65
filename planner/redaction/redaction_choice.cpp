#include "planner/redaction/redaction_choice.h"

#include <charconv>
#include <fmt/format.h>
#include <string_view>
#include <tuple>

namespace verger::planner::detail {
namespace {

/// Of "24.10.1"; false as well where the text is no version.
bool wants_licence(std::string_view version) {
  int major = 0;
  int minor = 0;
  const char* end = version.data() + version.size();
  const auto first = std::from_chars(version.data(), end, major);
  return first.ec == std::errc() && first.ptr != end && *first.ptr == '.' &&
         std::from_chars(first.ptr + 1, end, minor).ec == std::errc() &&
         std::tuple(major, minor) >= std::tuple(24, 10);
}

}  // namespace

Refusal against_online(const NodeSnapshot& node, const RedactionPolicy& wanted) {
  if (!node.agent) {
    return {"online-not-possible", node.name, "it has no agent beside it that answers",
            "install verger-agent on that machine, and register its address"};
  }
  if (!node.agent->online_problem.empty()) {
    return {"online-not-possible", node.name, node.agent->online_problem,
            "correct that, or say --strategy auto: the node is then redacted while it is stopped"};
  }
  if (wants_licence(node.version) && !wanted.interface_licensed) {
    return {"online-needs-licence", node.name,
            fmt::format("version {} wants a licence for the redaction interface, and the plan does "
                        "not say that there is one",
                        node.version),
            "say --interface-licensed true where you have one, or --strategy offline"};
  }
  return {};
}

RedactionChoice choose_redaction(const NodeSnapshot& node, const RedactionPolicy& wanted) {
  const auto against = against_online(node, wanted);
  switch (wanted.strategy) {
    case RedactionStrategy::kOffline:
      return {.online = false, .reason = "the strategy is offline"};
    case RedactionStrategy::kOnline:
      return {.online = true, .reason = "the strategy is online"};
    case RedactionStrategy::kAuto:
      break;
  }
  if (against.message.empty()) {
    return {.online = true, .reason = "its server switches chunk files in while it runs"};
  }
  return {.online = false, .reason = fmt::format("not while it runs: {}", against.message)};
}

}  // namespace verger::planner::detail
