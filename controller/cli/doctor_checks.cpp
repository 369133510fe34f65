#include "controller/cli/doctor_checks.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/times.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using Diagnoses = std::vector<Diagnosis>;

/// As the alert rules of examples/prometheus have it.
constexpr std::int64_t kDaysToWarn = 30;
constexpr std::int64_t kDaysToFail = 7;
/// A chunk of usual size and the reserve that the gate `disk` keeps: with less no chunk can
/// be rewritten.
constexpr std::int64_t kLeastFreeBytes = std::int64_t{512} << 20U;
/// Below this share of the database rewrites of several large chunks may have to wait.
constexpr std::int64_t kFreeShare = 10;
/// From here on the gate `clocks` of a plan with default limits is closed.
constexpr std::int64_t kClockSkewToFail = 60'000;
constexpr std::int64_t kClockSkewToWarn = 5'000;

void check_agent(const std::string& subject, const json& node, Diagnoses& out) {
  if (text_of(node, "agent_url").empty()) {
    out.push_back({Verdict::kNote, subject,
                   "it has no agent: fewer checks, no backups, no work on a stopped server",
                   "install verger-agent beside it (docs/operations/install.md)"});
  } else if (!is_true(node, "agent_reachable")) {
    out.push_back({Verdict::kError, subject,
                   fmt::format("its agent at {} does not answer", text_of(node, "agent_url")),
                   "on its machine: systemctl status verger-agent; here: verger agent list"});
  }
}

void check_disk(const std::string& subject, const json& node, Diagnoses& out) {
  if (!node.value("disk_free_bytes", json()).is_number()) {
    return;
  }
  const auto free = number_of(node, "disk_free_bytes");
  const bool full = free < kLeastFreeBytes;
  if (full || free < number_of(node, "database_bytes") / kFreeShare) {
    out.push_back({full ? Verdict::kError : Verdict::kWarning, subject,
                   fmt::format("{} are free on its disk, beside a database of {}",
                               optional_bytes(node, "disk_free_bytes"),
                               optional_bytes(node, "database_bytes")),
                   "free space or extend the volume; rewriting the largest chunk needs room"});
  }
}

void check_clock(const std::string& subject, const json& node, Diagnoses& out) {
  const auto ahead = number_of(node, "clock_ahead_ms");
  const auto off = std::abs(ahead) - number_of(node, "clock_error_ms");
  if (off >= kClockSkewToWarn) {
    out.push_back({off > kClockSkewToFail ? Verdict::kError : Verdict::kWarning, subject,
                   fmt::format("its clock is {} s {} vergerd's", std::abs(ahead) / 1000,
                               ahead > 0 ? "ahead of" : "behind"),
                   "set the clocks of both machines by NTP (timedatectl)"});
  }
}

void check_node(const std::string& cluster, const json& node, Diagnoses& out) {
  const auto subject = cluster + "/" + text_of(node, "name");
  const auto before = out.size();
  const auto problem = text_of(node, "problem");
  if (!is_true(node, "reachable")) {
    out.push_back(
        {Verdict::kError, subject,
         problem.empty() ? fmt::format("{} does not answer", text_of(node, "url")) : problem,
         "look at the server's unit and log, and at the network between"});
  } else if (!problem.empty()) {
    out.push_back({Verdict::kError, subject, problem,
                   fmt::format("verger cluster show {}; credentials and files: "
                               "docs/operations/agents.md",
                               cluster)});
  } else if (!is_true(node, "is_alive")) {
    out.push_back({Verdict::kError, subject, "the other nodes do not see it alive",
                   "check the network between the nodes, and their certificates"});
  }
  check_agent(subject, node, out);
  check_disk(subject, node, out);
  check_clock(subject, node, out);
  if (out.size() == before) {
    out.push_back(
        {Verdict::kOk, subject,
         fmt::format("{}, version {}", text_of(node, "state"), text_of(node, "version"))});
  }
}

void check_versions(const std::string& cluster, const json& nodes, Diagnoses& out) {
  std::set<std::string> versions;
  for (const auto& node : nodes) {
    if (auto version = text_of(node, "version"); !version.empty()) {
      versions.insert(std::move(version));
    }
  }
  if (versions.size() > 1) {
    out.push_back({Verdict::kWarning, cluster,
                   fmt::format("its nodes have different versions: {}", fmt::join(versions, ", ")),
                   "finish the upgrade of the servers"});
  }
}

/// The certificate that ends first, of all in these lists.
struct FirstEnd {
  std::int64_t days = 0;
  std::string node{};
  std::string list{};
  std::string subject{};
  std::string not_after{};
};

std::optional<FirstEnd> first_end(const json& certificates) {
  std::optional<FirstEnd> first;
  for (const auto& node : list_of(certificates, "nodes")) {
    for (const auto* list : {"served", "files", "agent", "users"}) {
      for (const auto& each : list_of(node, list)) {
        const auto days = number_of(each, "days_left");
        if (!first || days < first->days) {
          first = {days, text_of(node, "node"), list, text_of(each, "subject"),
                   time_of(each, "not_after")};
        }
      }
    }
  }
  return first;
}

/// The policy `late`, `too_old` or waiting for the cluster.
void check_selected(const std::string& policy, const json& selected, Diagnoses& out) {
  const auto cluster = text_of(selected, "cluster");
  const auto look = fmt::format("verger schedule next {0}; verger run list {0}", cluster);
  if (const auto too_old = text_of(selected, "too_old"); !too_old.empty()) {
    out.push_back({Verdict::kError, cluster, fmt::format("policy {}: {}", policy, too_old), look});
  }
  if (const auto late = text_of(selected, "late"); !late.empty()) {
    out.push_back({Verdict::kWarning, cluster, fmt::format("policy {}: {}", policy, late), look});
  }
  if (text_of(selected, "outcome") == "needs-approval") {
    out.push_back({Verdict::kNote, cluster,
                   fmt::format("policy {}: a plan waits for approval", policy),
                   fmt::format("verger plan show {}", text_of(selected, "plan"))});
  }
  if (const auto waiting = text_of(selected, "waiting"); !waiting.empty()) {
    out.push_back({Verdict::kNote, cluster, fmt::format("policy {} waits: {}", policy, waiting),
                   fmt::format("verger schedule next {}", cluster)});
  }
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kNote:
      return "note";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kError:
      return "error";
  }
  return "";
}

Diagnoses check_controller(const json& health, const std::string& own_version) {
  const auto version = text_of(health, "version");
  if (text_of(health, "status") != "ok") {
    return {{Verdict::kError, "vergerd",
             fmt::format("it is a standby: {}", text_of(health, "reason")),
             "give the URLs of both: --controller URL,URL"}};
  }
  if (version != own_version) {
    return {{Verdict::kWarning, "vergerd",
             fmt::format("its version is {}, that of this program {}", version, own_version),
             "install the same version of verger-controller and verger-cli"}};
  }
  return {{Verdict::kOk, "vergerd",
           fmt::format("version {}, epoch {}", version, number_of(health, "controller_epoch"))}};
}

Diagnoses check_cluster(const json& cluster, const std::string& own_version) {
  Diagnoses out;
  const auto name = text_of(cluster, "name");
  const auto snapshot = object_of(cluster, "snapshot");
  const auto nodes = list_of(snapshot, "nodes");
  if (text_of(snapshot, "leader").empty()) {
    out.push_back({Verdict::kError, name, "no leader is seen",
                   "see its nodes below; a majority of the voters has to be up"});
  }
  for (const auto& node : nodes) {
    check_node(name, node, out);
  }
  check_versions(name, nodes, out);
  for (const auto& node : nodes) {
    const auto version = text_of(node, "agent_version");
    if (!version.empty() && version != own_version) {
      out.push_back({Verdict::kWarning, name + "/" + text_of(node, "name"),
                     fmt::format("the version of its agent is {}, that of this program {}", version,
                                 own_version),
                     "install the same version of Verger everywhere (docs/operations/upgrade.md)"});
    }
  }
  for (const auto& warning : list_of(snapshot, "warnings")) {
    out.push_back({Verdict::kWarning, name, warning.get<std::string>(),
                   fmt::format("verger cluster show {}", name)});
  }
  for (const auto& other : list_of(snapshot, "strangers")) {
    out.push_back({Verdict::kWarning, name,
                   fmt::format("{} is a member of the cluster that is not registered",
                               other.get<std::string>()),
                   fmt::format("verger cluster update {} --node ..., with all nodes", name)});
  }
  if (is_true(cluster, "paused")) {
    out.push_back({Verdict::kNote, name,
                   fmt::format("it is paused: {}", text_of(cluster, "pause_reason")),
                   fmt::format("verger cluster resume {}", name)});
  }
  return out;
}

Diagnoses check_certificates(const json& certificates) {
  Diagnoses out;
  const auto cluster = text_of(certificates, "cluster");
  if (const auto first = first_end(certificates)) {
    const auto subject = cluster + "/" + first->node;
    const auto text = fmt::format("certificate {} ({}) ends at {}, in {} days", first->subject,
                                  first->list, first->not_after, first->days);
    if (first->days < kDaysToWarn) {
      out.push_back({first->days < kDaysToFail ? Verdict::kError : Verdict::kWarning, subject, text,
                     first->list == "agent" ? std::string("docs/operations/enrolment.md")
                                            : fmt::format("verger cert plan {}", cluster)});
    } else {
      out.push_back({Verdict::kOk, cluster, "first " + text});
    }
  }
  for (const auto& node : list_of(certificates, "nodes")) {
    if (is_true(node, "file_differs")) {
      out.push_back({Verdict::kWarning, cluster + "/" + text_of(node, "node"),
                     "its certificate file holds another certificate than it shows",
                     "reload the server: POST /admin/reloadconfig, or kill -HUP"});
    }
  }
  return out;
}

Diagnoses check_backups(const json& backups) {
  Diagnoses out;
  const auto cluster = text_of(backups, "cluster");
  for (const auto& conflict : list_of(backups, "conflicts")) {
    out.push_back({Verdict::kWarning, cluster, conflict.get<std::string>(),
                   "give each repository a name of its own in the agents' files"});
  }
  for (const auto& problem : list_of(backups, "problems")) {
    const auto repository = text_of(problem, "repository");
    out.push_back(
        {Verdict::kError, cluster + "/" + text_of(problem, "node"),
         repository.empty()
             ? fmt::format("its backup repositories: {}", text_of(problem, "reason"))
             : fmt::format("backup repository {}: {}", repository, text_of(problem, "reason")),
         "docs/operations/backups.md"});
  }
  if (list_of(backups, "repositories").empty()) {
    out.push_back({Verdict::kNote, cluster, "no agent has a repository of backups",
                   "BackupRepositories of the agents (docs/operations/backups.md)"});
    return out;
  }
  const auto all = list_of(backups, "backups");
  const auto usable = std::ranges::find_if(
      all, [](const json& each) { return text_of(each, "damage").empty(); });  // newest first
  if (usable == all.end()) {
    out.push_back({Verdict::kError, cluster, "there is no usable backup",
                   fmt::format("verger backup create {} --repository NAME", cluster)});
    return out;
  }
  const auto check = object_of(*usable, "last_verify");
  const auto age = length_text(std::chrono::seconds(number_of(*usable, "age_seconds")));
  const auto text = fmt::format("the newest backup, {}, is {} old", text_of(*usable, "id"), age);
  if (check.empty()) {
    out.push_back({Verdict::kWarning, cluster, text + ", and was never verified",
                   fmt::format("verger backup verify {} {}", cluster, text_of(*usable, "id"))});
  } else if (!is_true(check, "passed")) {
    out.push_back(
        {Verdict::kError, cluster,
         fmt::format("{}, and did not pass its verification: {}", text, text_of(check, "summary")),
         fmt::format("verger backup create {} --repository NAME", cluster)});
  } else {
    out.push_back({Verdict::kOk, cluster, text + ", and verified"});
  }
  return out;
}

Diagnoses check_policies(const json& policies, const std::string& cluster) {
  Diagnoses out;
  bool selected = false;
  for (const auto& policy : list_of(policies, "policies")) {
    for (const auto& each : list_of(policy, "selected")) {
      if (text_of(each, "cluster") == cluster && is_true(policy, "enabled")) {
        selected = true;
        check_selected(text_of(policy, "name"), each, out);
      }
    }
  }
  if (!selected) {
    out.push_back({Verdict::kNote, cluster, "no policy selects it: nothing is scheduled",
                   "verger policy apply FILE; examples: /usr/share/verger/policies"});
  }
  return out;
}

Diagnoses check_schedule(const json& schedule) {
  Diagnoses out;
  std::set<std::string> named;
  for (const auto& each : list_of(schedule, "times")) {
    const auto policy = text_of(each, "policy");
    if (text_of(each, "kind") == "due" && !is_true(each, "inside") && named.insert(policy).second) {
      out.push_back(
          {Verdict::kWarning, text_of(schedule, "cluster"),
           fmt::format("policy {}: what is due at {} {} is outside of its windows", policy,
                       text_of(each, "policys"), text_of(each, "zone")),
           fmt::format("correct its schedule or its windows: verger policy show {}", policy)});
    }
  }
  return out;
}

}  // namespace verger::cli
