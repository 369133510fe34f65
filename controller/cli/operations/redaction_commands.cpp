#include <fmt/format.h>
#include <fstream>
#include <memory>
#include <ostream>
#include <sstream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/confirmation.h"
#include "controller/cli/json_text.h"
#include "controller/cli/plan_request.h"
#include "controller/cli/plan_text.h"
#include "planner/operations.h"

// `verger redact`: what `verger plan redaction` and `verger apply` do, with a file of events, and
// with a question before data is gone for good.
namespace verger::cli {
namespace {

using nlohmann::json;

const planner::Operation& redaction_operation() {
  static const auto& kOperation = *planner::find_operation("redaction");
  return kOperation;
}

struct RedactOptions {
  PlanOptions plan{};
  ApplyOptions apply{};
  std::string events_file{};
  bool metadata = false;
  bool yes = false;
};

/// With a line feed at its end, as the operation tells lines from names with commas.
std::expected<std::string, std::string> lines_of(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    return std::unexpected(fmt::format("{}: cannot be read", path));
  }
  auto out = text.str();
  return out.ends_with('\n') ? out : out + '\n';
}

int plan_redaction(const CliContext& context, RedactOptions options) {
  if (!options.events_file.empty()) {
    auto lines = lines_of(options.events_file);
    if (!lines) {
      context.err << "verger: " << lines.error() << '\n';
      return kUsage;
    }
    parameter_of(options.plan, "events") = *std::move(lines);
  }
  if (options.metadata) {
    parameter_of(options.plan, "metadata") = "true";
  }
  const auto plan = request_plan(context, redaction_operation(), options.plan);
  if (!plan) {
    return context.fail(plan.error());
  }
  print_plan(context, *plan);
  if (!context.json) {
    context.out << fmt::format(
        "nothing has been touched; carry it out with: verger redact apply {} {} --wait\n",
        options.plan.cluster, text_of(*plan, "hash").substr(0, 12));
  }
  return kDone;
}

int apply_redaction(const CliContext& context, RedactOptions options) {
  const auto plan = context.api.get("/plans/" + http::percent_encode(options.apply.hash));
  if (!plan) {
    return context.fail(plan.error());
  }
  if (text_of(*plan, "operation") != redaction_operation().name ||
      text_of(*plan, "cluster") != options.plan.cluster) {
    context.err << fmt::format(
        "verger: plan {} is of the operation {} on cluster {}, not of a redaction of {}; nothing "
        "was touched\n",
        text_of(*plan, "hash").substr(0, 12), text_of(*plan, "operation"),
        text_of(*plan, "cluster"), options.plan.cluster);
    return kRefused;
  }
  if (!context.json) {
    for (const auto& note : list_of(*plan, "notes")) {
      if (note.is_string()) {
        context.out << "note: " << note.get<std::string>() << '\n';
      }
    }
  }
  const auto question = fmt::format(
      "This blanks the data of these events on ALL nodes of {0}, for good. Type {0} to begin: ",
      options.plan.cluster);
  if (!options.yes && !confirmed(context, question, {options.plan.cluster})) {
    return kRefused;
  }
  return apply_plan(context, options.apply);
}

}  // namespace

void add_redaction_commands(CLI::App& app, Command& chosen) {
  auto* redact = app.add_subcommand("redact", "Blank the data of events on all nodes of a cluster");
  redact->footer("docs/operations/redaction.md says what is refused, and what is not reached");
  redact->require_subcommand(1);

  auto planned = std::make_shared<RedactOptions>();
  auto* plan = redact->add_subcommand("plan", "What would be redacted, and in which order");
  plan->footer(
      "Example: verger redact plan orders --events 12@customer-7,13@customer-7 --reason 'request "
      "4711'");
  add_plan_options(*plan, redaction_operation(), planned->plan,
                   [](std::string_view parameter) { return parameter != "metadata"; });
  plan->add_option("--events-file", planned->events_file,
                   "File with one NUMBER@STREAM per line; lines that begin with # are skipped")
      ->excludes("--events");
  plan->add_flag("--metadata", planned->metadata, "Blank the metadata of these events, too");
  plan->callback([planned, &chosen] {
    chosen = [planned](const CliContext& context) { return plan_redaction(context, *planned); };
  });

  auto applied = std::make_shared<RedactOptions>();
  auto* apply = redact->add_subcommand("apply", "Carry a plan out");
  apply->footer("Example: verger redact apply orders 3f2a90cc41d7 --wait");
  apply->add_option("CLUSTER", applied->plan.cluster)->required();
  apply->add_option("HASH", applied->apply.hash, "The plan's hash, or its first digits")
      ->required();
  apply->add_flag("--yes", applied->yes, "Without asking");
  add_wait_options(*apply, applied->apply);
  apply->callback([applied, &chosen] {
    chosen = [applied](const CliContext& context) { return apply_redaction(context, *applied); };
  });
}

}  // namespace verger::cli
