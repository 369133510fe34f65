#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/doctor_checks.h"
#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "engine/base/clock.h"

// doctor
namespace verger::cli {
namespace {

using nlohmann::json;

/// All that was found; what cannot be queried is a finding, too.
class Examination {
 public:
  explicit Examination(const CliContext& context) : context_(context) {}

  /// Error: nothing could be examined.
  std::expected<std::vector<Diagnosis>, CallFailure> run(const std::string& only) {
    const auto health = context_.api.get("/health");
    if (!health) {
      return std::unexpected(health.error());
    }
    add(check_controller(*health, VERGER_VERSION));
    if (const auto caller = context_.api.get("/whoami"); caller) {
      add(check_caller(*caller, now_));
      if (text_of(*caller, "role") == "admin") {
        examine_tokens(text_of(*caller, "name"));
      }
    } else {
      failed("token", "its role", caller.error());
    }
    if (const auto agents = context_.api.get("/agents"); agents) {
      add(check_agents(*agents, only, now_));
    } else {
      failed("vergerd", "enrolled agents", agents.error());
    }
    const auto clusters = context_.api.get_all("/clusters", "clusters");
    if (!clusters) {
      return std::unexpected(clusters.error());
    }
    const auto policies = context_.api.get_all("/policies", "policies");
    if (!policies) {
      failed("vergerd", "policies", policies.error());
    }
    bool found = false;
    for (const auto& each : list_of(*clusters, "clusters")) {
      const auto name = text_of(each, "name");
      if (only.empty() || only == name) {
        found = true;
        examine(name, policies ? &*policies : nullptr);
      }
    }
    if (!found) {
      findings_.push_back(
          {only.empty() ? Verdict::kNote : Verdict::kError, only.empty() ? "vergerd" : only,
           only.empty() ? "no cluster is registered" : "no such cluster is registered",
           "verger cluster discover URL"});
    }
    return findings_;
  }

 private:
  void add(std::vector<Diagnosis> more) {
    findings_.insert(findings_.end(), std::make_move_iterator(more.begin()),
                     std::make_move_iterator(more.end()));
  }
  void failed(const std::string& subject, std::string_view what, const CallFailure& failure) {
    findings_.push_back({Verdict::kError, subject,
                         fmt::format("{} cannot be seen: {}", what, failure.message), ""});
  }
  void examine_tokens(const std::string& own) {
    if (const auto tokens = context_.api.get_all("/tokens", "tokens"); tokens) {
      add(check_tokens(*tokens, own, now_));
    } else {
      failed("vergerd", "tokens", tokens.error());
    }
  }
  void examine(const std::string& name, const json* policies) {
    const auto path = fmt::format("/clusters/{}", http::percent_encode(name));
    const auto look = [&](const std::string& below, std::string_view what, auto check) {
      if (const auto answer = context_.api.get(path + below); answer) {
        add(check(*answer));
      } else {
        failed(name, what, answer.error());
      }
    };
    look("", "its nodes",
         [](const json& cluster) { return check_cluster(cluster, VERGER_VERSION); });
    look("/certificates", "certificates", check_certificates);
    look("/backups", "backups", check_backups);
    if (policies != nullptr) {
      add(check_policies(*policies, name));
    }
    look("/schedule", "its schedule", check_schedule);
  }

  const CliContext& context_;
  const Ticks now_ = system_clock().now();
  std::vector<Diagnosis> findings_;
};

int print_findings(const CliContext& context, const std::vector<Diagnosis>& findings) {
  Table table({{"verdict"},
               {"of"},
               {"finding", Table::Align::kWrap},
               {"remedy", Table::Align::kWrap, true}});
  for (const auto& each : findings) {
    if (context.json) {
      context.out << json{{"verdict", verdict_name(each.verdict)},
                          {"subject", each.subject},
                          {"finding", each.text},
                          {"remedy", each.remedy}}
                         .dump()
                  << '\n';
    } else {
      table.add({std::string(verdict_name(each.verdict)), each.subject, each.text,
                 each.remedy.empty() ? "-" : each.remedy});
    }
  }
  const auto count = [&](Verdict verdict) {
    return std::ranges::count(findings, verdict, &Diagnosis::verdict);
  };
  if (!context.json) {
    context.print(table);
    const auto errors = count(Verdict::kError);
    const auto warnings = count(Verdict::kWarning);
    context.out << fmt::format("{} error{}, {} warning{}\n", errors, errors == 1 ? "" : "s",
                               warnings, warnings == 1 ? "" : "s");
  }
  return count(Verdict::kError) > 0 ? kFailed : kDone;
}

}  // namespace

void add_doctor_command(CLI::App& app, Command& chosen) {
  auto cluster = std::make_shared<std::string>();
  auto* doctor = app.add_subcommand(
      "doctor",
      "Examine vergerd, tokens, clusters, agents, certificates, clocks, disks, backups and "
      "schedules");
  doctor->add_option("CLUSTER", *cluster, "Only this one");
  doctor->footer(
      "Exit codes: 0 no errors; 1 errors were found, or vergerd does not answer; 64 wrong usage.\n"
      "Example: verger doctor orders");
  doctor->callback([cluster, &chosen] {
    chosen = [cluster](const CliContext& context) {
      const auto findings = Examination(context).run(*cluster);
      return findings ? print_findings(context, *findings) : context.fail(findings.error());
    };
  });
}

}  // namespace verger::cli
