#include "controller/cli/cert/cert_rollout.h"

#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/cert/cert_lint.h"
#include "controller/cli/cert/cert_set.h"
#include "controller/cli/confirmation.h"
#include "controller/cli/json_text.h"
#include "controller/cli/plan_request.h"
#include "controller/cli/plan_text.h"
#include "engine/base/clock.h"

namespace verger::cli {
namespace {

using nlohmann::json;

struct RolloutOptions {
  PlanOptions plan{};
  LintOptions files{};  ///< where its directory is not empty: the files to bring
  bool keep_keys = false;
  bool carry_out = false;
  bool yes = false;
  ApplyOptions apply{};
};

const planner::Operation& rollout_operation() {
  static const auto& kOperation = *planner::find_operation("certificates");
  return kOperation;
}

/// The nodes of the cluster; nullopt: why not was printed, and `status` is the exit code.
std::optional<std::vector<NodeOfCluster>> nodes_of(const CliContext& context,
                                                   const std::string& cluster, int& status) {
  const auto answer = context.api.get("/clusters/" + http::percent_encode(cluster));
  if (!answer) {
    status = context.fail(answer.error());
    return std::nullopt;
  }
  std::vector<NodeOfCluster> out;
  for (const auto& node : list_of(*answer, "nodes")) {
    out.push_back({.name = text_of(node, "name"), .has_agent = !text_of(node, "agent").empty()});
  }
  return out;
}

/// Brings each file to the agent of its node. Gives the exit code.
int bring(const CliContext& context, const std::string& cluster, const CertificateSet& set) {
  for (const auto& [node, files] : set.files) {
    auto all = files;
    all.push_back(set.manifest);
    for (const auto& file : all) {
      const auto path = fmt::format("/clusters/{}/nodes/{}/files/{}", http::percent_encode(cluster),
                                    http::percent_encode(node), file.sha256);
      if (const auto stored = context.api.put_file(path, file.content); !stored) {
        const int status = context.fail(stored.error());
        context.err << "verger: no node's certificate was touched; what agents have got of the set "
                       "they delete within a week\n";
        return status;
      }
    }
  }
  return kDone;
}

/// Checks the files of the directory, and brings them to the agents; the plan is about them then.
int bring_files(const CliContext& context, RolloutOptions& options) {
  auto& source = parameter_of(options.plan, "source");
  if (!source.empty() && source != "files") {
    context.err << fmt::format("verger: --from brings files, which is --source files, and not {}\n",
                               source);
    return kUsage;
  }
  int status = kDone;
  const auto nodes = nodes_of(context, options.plan.cluster, status);
  if (!nodes) {
    return status;
  }
  std::vector<std::string> notes;
  auto input = gather(options.files, system_clock().now(), notes);
  if (!input) {
    context.err << "verger: " << input.error().message << '\n';
    return kUsage;
  }
  if (options.keep_keys) {
    for (auto& node : input->nodes) {
      node.next.key.reset();
    }
  }
  const auto problems = set_problems(*input, options.files.directory, options.plan.cluster, *nodes);
  for (const auto& problem : problems) {
    context.err << "verger: " << problem << '\n';
  }
  if (!problems.empty()) {
    context.err << "verger: nothing was touched\n";
    return kRefused;
  }
  // What is wrong with the files by themselves; what concerns the nodes is checked with the plan.
  const auto report = certificates::lint(*input);
  const bool failed = !report.passed();
  if (failed) {
    print_lint(
        {.out = context.out, .err = context.err, .json = context.json, .width = context.width},
        report, notes);
    return kRefused;
  }
  const auto set = make_set(*input);
  if (const int brought = bring(context, options.plan.cluster, set); brought != kDone) {
    return brought;
  }
  source = "files";
  parameter_of(options.plan, "set") = set.manifest.sha256;
  if (!context.json) {
    context.out << fmt::format("the files of {} are with their agents, as set {}\n",
                               counted(static_cast<std::int64_t>(set.files.size()), "node"),
                               set.manifest.sha256.substr(0, 12));
  }
  return kDone;
}

int run_rollout(const CliContext& context, RolloutOptions options) {
  if (!options.files.directory.empty()) {
    if (const int status = bring_files(context, options); status != kDone) {
      return status;
    }
  }
  const auto plan = request_plan(context, rollout_operation(), options.plan);
  if (!plan) {
    return context.fail(plan.error());
  }
  print_plan(context, *plan);
  if (!options.carry_out) {
    print_next(context, *plan);
    return kDone;
  }
  if (!options.yes && !confirmed(context,
                                 fmt::format("change the certificates of {} like this? [y/N] ",
                                             options.plan.cluster),
                                 {"y", "Y", "yes"})) {
    return kRefused;
  }
  options.apply.hash = text_of(*plan, "hash");
  return apply_plan(context, options.apply);
}

std::shared_ptr<RolloutOptions> add_rollout_command(CLI::App& command) {
  auto options = std::make_shared<RolloutOptions>();
  options->files.ec_keys = true;  // of which node it is true is checked with the plan
  add_plan_options(command, rollout_operation(), options->plan);
  command.add_option(
      "--from", options->files.directory,
      "Directory on this machine with a folder per node, as lint takes it: its files "
      "are brought to the agents (source files)");
  command.add_option("--trusted-roots", options->files.roots,
                     "With --from: all trusted roots at the end, a file or a directory (DIR/ca)");
  command.add_flag("--keep-keys", options->keep_keys,
                   "With --from: the new certificates are of the keys that the nodes have");
  add_password_options(command, "key-password", "encrypted keys, to check them",
                       options->files.key_password);
  return options;
}

}  // namespace

void add_cert_rollout(CLI::App& cert, Command& chosen) {
  auto* plan = cert.add_subcommand(
      "plan", "How new certificates would come to all nodes of a cluster; changes none");
  plan->footer("Example: verger cert plan orders --from ./certs");
  const auto planned = add_rollout_command(*plan);
  plan->callback([planned, &chosen] {
    chosen = [planned](const CliContext& context) { return run_rollout(context, *planned); };
  });

  auto* rollout = cert.add_subcommand(
      "rollout",
      "New certificates on all nodes of a cluster, proven by connections, or on none of them");
  rollout->footer(
      "Examples: verger cert rollout orders --from ./certs --wait\n"
      "          verger cert rollout orders --source csr --authority company --yes --wait");
  const auto carried_out = add_rollout_command(*rollout);
  carried_out->carry_out = true;
  rollout->add_flag("--yes", carried_out->yes, "Do not ask before the plan is carried out");
  add_wait_options(*rollout, carried_out->apply);
  rollout->callback([carried_out, &chosen] {
    chosen = [carried_out](const CliContext& context) {
      return run_rollout(context, *carried_out);
    };
  });
}

}  // namespace verger::cli
