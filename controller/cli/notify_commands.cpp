#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/table.h"

// notify test
namespace verger::cli {
namespace {

using nlohmann::json;

int test_notifications(const CliContext& context, const std::string& policy) {
  const auto answer = context.api.post(
      fmt::format("/policies/{}/notifications/test", http::percent_encode(policy)), json::object());
  if (!answer) {
    return context.fail(answer.error());
  }
  const auto recipients = list_of(*answer, "recipients");
  bool all = true;
  Table table({{"recipient", Table::Align::kWrap}, {"outcome", Table::Align::kWrap}});
  for (const auto& each : recipients) {
    const bool delivered = each.value("delivered", false);
    all = all && delivered;
    table.add({text_of(each, "to"), delivered ? "delivered" : text_of(each, "problem")});
  }
  if (context.json) {
    context.out << answer->dump() << '\n';
  } else if (recipients.empty()) {
    context.out << fmt::format("policy {} notifies no recipient\n", policy);
  } else {
    context.print(table);
    if (!all) {
      context.err << fmt::format(
          "verger: not delivered to all; correct the recipient in policy {0}, or what refuses or "
          "does not answer there, then again: verger notify test {0}\n",
          policy);
    }
  }
  return all ? kDone : kFailed;
}

}  // namespace

void add_notify_commands(CLI::App& app, Command& chosen) {
  auto* notify = app.add_subcommand("notify", "Notifications of policies");
  notify->require_subcommand(1);
  auto policy = std::make_shared<std::string>();
  auto* test = notify->add_subcommand(
      "test", "Send a notification to each recipient of a policy, and say what became of it");
  test->footer("Example: verger notify test nightly");
  test->add_option("POLICY", *policy)->required();
  test->callback([policy, &chosen] {
    chosen = [policy](const CliContext& context) { return test_notifications(context, *policy); };
  });
}

}  // namespace verger::cli
