#include <algorithm>
#include <fmt/format.h>
#include <set>

#include <nlohmann/json.hpp>

#include "controller/operations/redaction/redaction_module.h"
#include "controller/operations/redaction/redaction_support.h"
#include "planner/redaction/redaction_policy.h"

namespace verger::controller::redactions {
namespace {

using nlohmann::json;

/// A member that may be missing.
template <class Value>
Value number_of(const json& result, const char* name) {
  return result.value(name, Value{0});
}
json array_in(const json& result, std::string_view name) {
  return result.value(std::string(name), json::array());
}

json node_of_report(const planner::Step& step, const StepState* state) {
  const bool ended = state != nullptr && state->status == StepStatus::kDone;
  const json result = ended ? *state->result : json::object();
  const bool already = ended && result.contains("not_needed");
  const bool searched = ended && !already;
  auto left = array_in(result, kDifferences);
  return {{"node", step.node},
          {"state", already ? "already"
                    : ended ? "redacted"
                            : "not-done"},
          {"proven", searched && left.empty() && result.value("proven", false)},
          {"records", number_of<std::int64_t>(result, "records")},
          {"blanked", number_of<std::int64_t>(result, "blanked")},
          {"already", number_of<std::int64_t>(result, "already")},
          {"read_blank", number_of<std::int64_t>(result, "read_blank")},
          {"missing", array_in(result, "missing")},
          {"chunks", array_in(result, "chunks")},
          {"removed", array_in(result, "removed")},
          {"texts", number_of<std::int64_t>(result, "texts")},
          {"unsearchable", number_of<std::int64_t>(result, "unsearchable")},
          {"searched_files", number_of<std::int64_t>(result, "searched_files")},
          {"searched_bytes", number_of<std::int64_t>(result, "searched_bytes")},
          {"left", std::move(left)},
          {"online", step.kind == names::kRedactOnline},
          {"way", step.reason},
          {"read_back", number_of<std::int64_t>(result, "read_back")},
          {"search_rounds", number_of<std::int64_t>(result, "search_rounds")},
          {"changing", array_in(result, "changing")},
          {"held_searched", number_of<std::int64_t>(result, "held_searched")},
          {"confirmed", false},
          {"seconds", state == nullptr ? 0.0 : static_cast<double>(state->active_ms) / 1'000.0}};
}

/// What the steps of the run saw.
struct SeenInRedaction {
  json nodes = json::array();
  json backups = json::array();
  json problems = json::array();
  std::set<std::string> expired{};  ///< ids of backups
  bool backups_seen = false;
  std::size_t done = 0;
  std::size_t begun = 0;
  bool differs = false;

  explicit SeenInRedaction(const RunState& run) {
    for (const auto& stage : run.plan->stages) {
      for (const auto& group : stage.groups) {
        for (const auto& step : group) {
          const auto found = run.steps.find(step.id);
          take(run, step, found == run.steps.end() ? nullptr : &found->second);
        }
      }
    }
  }

 private:
  void take(const RunState& run, const planner::Step& step, const StepState* state) {
    if (step.kind == names::kConfirm) {
      confirm(step, state);
    } else if (step.kind == names::kRedact || step.kind == names::kRedactOnline) {
      begun += state != nullptr && state->attempt > 0 ? 1U : 0U;
      done += state != nullptr && state->status == StepStatus::kDone ? 1U : 0U;
      nodes.push_back(node_of_report(step, state));
      differs = differs || !nodes.back()["left"].empty();
    } else if (step.kind == names::kBackups && state != nullptr &&
               state->status == StepStatus::kDone) {
      take_backups(run, *state->result);
    } else if (step.kind == names::kExpire && state != nullptr &&
               state->status == StepStatus::kDone) {
      for (const auto& id : array_in(*state->result, "expired")) {
        expired.insert(id.get<std::string>());
      }
      for (auto& each : backups) {
        each["expired"] = expired.contains(each.value("generation", std::string()));
      }
    }
  }
  /// The looks of the end.
  void confirm(const planner::Step& step, const StepState* state) {
    const auto of = std::ranges::find_if(
        nodes, [&step](const json& node) { return node.at("node") == step.node; });
    if (of == nodes.end() || (*of)["state"] == "not-done") {
      return;
    }
    auto again = json::array();
    if (state == nullptr || state->status != StepStatus::kDone) {
      again.push_back(fmt::format(
          "{}: it was not looked at again at the end{}: plan the redaction again with the same "
          "events",
          step.node, state == nullptr || state->reason.empty() ? "" : ", " + state->reason));
    } else {
      again = array_in(*state->result, kDifferences);
    }
    (*of)["confirmed"] = again.empty();
    for (const auto& each : again) {
      (*of)["left"].push_back(each);
      (*of)["proven"] = false;
      differs = true;
    }
  }
  void take_backups(const RunState& run, const json& result) {
    backups_seen = true;
    problems = array_in(result, "problems");
    backups = array_in(result, "backups");
    for (auto& each : backups) {
      each["expired"] = false;  // until the deletion, which comes later, says so
      each["command"] = fmt::format("verger backup delete {} {} --repository {}", run.cluster,
                                    each.value("generation", std::string()),
                                    each.value("repository", std::string()));
    }
  }
};

std::string_view outcome_of(const SeenInRedaction& seen) {
  if (seen.done < seen.nodes.size()) {
    return seen.begun == 0 ? "unchanged" : "unfinished";
  }
  return seen.differs ? "not-proven" : "redacted";
}

/// Ids of the backups whose restore kept former files on the node in which something was found.
std::set<std::string> kept_by_restores(const json& node) {
  constexpr std::string_view kKept = "/old-before-";
  std::set<std::string> out;
  for (const auto& each : node.at("left")) {
    const auto left = each.get<std::string>();
    if (const auto at = left.find(kKept); at != std::string::npos) {
      const auto id = at + kKept.size();
      out.insert(left.substr(id, left.find('/', id) - id));
    }
  }
  return out;
}

json out_of_reach() {
  return json::array({"disk snapshots, and copies of the files that Verger did not make",
                      "events that link to these, and what projections made of them",
                      "what readers and subscribers have copied",
                      "blocks of the disk that no file has any longer"});
}

}  // namespace

json report(const RunState& run, json timeline) {
  SeenInRedaction seen(run);
  const auto& wanted = planner::redaction_of(run.plan->policy);
  const auto list = agreed_list_of(run.values);
  auto events = json::array();
  for (const auto& each : list) {
    events.push_back({{"stream", each.stream},
                      {"number", each.number},
                      {"position", each.position},
                      {"digest", each.digest}});
  }
  auto notes = json::array();
  const bool some_are_left = std::ranges::any_of(
      seen.backups, [](const json& each) { return !each.value("expired", false); });
  if (!seen.expired.empty()) {
    notes.push_back(
        "the content of expired backups is removed by the first deletion in their repository a day "
        "later; until then verger-db backup delete --undo brings them back");
  }
  if (some_are_left) {
    notes.push_back(
        "a restore of one of these backups brings the data back: make a new backup, then delete "
        "them; until then redact again after a restore");
  } else if (!seen.backups_seen) {
    notes.push_back("which backups hold the data was not looked for");
  }
  if (std::ranges::any_of(seen.nodes,
                          [](const json& node) { return node.at("state") == "already"; })) {
    notes.push_back(
        "a node whose state is \"already\" was redacted before: nothing was searched there, as the "
        "text is no longer known");
  }
  for (const auto& node : seen.nodes) {
    const auto before = number_of<std::int64_t>(node, "already");
    if (node.at("state") == "redacted" && before > 0) {
      notes.push_back(fmt::format(
          "{}: {} of {} records were redacted before this run, which searched for the texts of the "
          "others alone. With theirs in a file, verger-db redact DIR --prove --plaintext FILE "
          "searches, on the stopped node",
          node.at("node").get<std::string>(), before, number_of<std::int64_t>(node, "records")));
    }
    for (const auto& id : kept_by_restores(node)) {
      notes.push_back(fmt::format(
          "{0}: the former files that a restore kept may have the data, too; remove them with: "
          "verger restore discard-old {1} --generation {2} --nodes {0}",
          node.at("node").get<std::string>(), run.cluster, id));
    }
  }
  const auto outcome = outcome_of(seen);
  return {{"outcome", outcome},
          {"requester", run.started_by},
          {"reason", wanted.reason},
          {"metadata", wanted.metadata},
          {"events", std::move(events)},
          {"list", list.empty() ? std::string() : list_text(list)},
          {"nodes", std::move(seen.nodes)},
          {"backups", std::move(seen.backups)},
          {"backups_seen", seen.backups_seen},
          {"problems", std::move(seen.problems)},
          {"out_of_reach", out_of_reach()},
          {"timeline", std::move(timeline)},
          {"notes", std::move(notes)}};
}

}  // namespace verger::controller::redactions
