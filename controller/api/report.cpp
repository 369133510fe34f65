#include <fmt/format.h>
#include <map>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/api/views.h"

namespace verger::controller::views {
namespace {

using nlohmann::json;

json parsed(const std::string& text) {
  auto value = json::parse(text, nullptr, false);
  return value.is_object() ? value : json::object();
}

/// A member that may be missing or null.
json member(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? json() : *found;
}

/// Bytes before the node's first scavenge of this run, and after its last.
struct Scavenged {
  json bytes_before;
  json bytes_after;
  json point;
};

/// What the steps of a finished scavenge saw, sorted by what they are about.
struct Seen {
  std::map<std::string, Scavenged> nodes;  ///< by name
  json compared = json::object();          ///< result of compare_digests
  json baseline = json::object();          ///< result of record_digest: before anything was removed
  bool to_compare = false;                 ///< the plan has a step for it
  std::vector<json> lines{};               ///< what steps want a person to read
  std::set<std::string> not_begun{};       ///< nodes
  std::map<std::string, std::string> not_ended{};  ///< nodes, and why

  explicit Seen(const RunState& run) {
    for (const auto& stage : run.plan->stages) {
      collect(run, stage);
    }
  }

 private:
  static bool is_scavenge(const planner::Step& step) {
    return step.kind == "scavenge" || step.kind == "offline_scavenge";
  }
  void miss(const planner::Step& step, const StepState& state) {
    if (state.since) {
      not_ended[step.node] = state.reason;
      not_begun.erase(step.node);
    } else if (!not_ended.contains(step.node)) {
      not_begun.insert(step.node);
    }
  }
  void collect(const RunState& run, const planner::Stage& stage) {
    for (const auto& group : stage.groups) {
      for (const auto& step : group) {
        to_compare = to_compare || step.kind == "compare_digests";
        const auto state = run.steps.find(step.id);
        if (state == run.steps.end() || state->second.status != StepStatus::kDone) {
          if (is_scavenge(step)) {
            miss(step, state == run.steps.end() ? StepState{} : state->second);
          }
          continue;
        }
        const auto result = parsed(state->second.result);
        for (const auto& line : result.value("report", json::array())) {
          lines.push_back(line);
        }
        if (is_scavenge(step)) {
          auto& node = nodes[step.node];
          if (node.bytes_before.is_null()) {
            node.bytes_before = member(result, "bytesBefore");
          }
          node.bytes_after = member(result, "bytesAfter");
          node.point = member(result, "point");
        } else if (step.kind == "compare_digests") {
          compared = result;
        } else if (step.kind == "record_digest") {
          baseline = result;
        }
      }
    }
  }
};

json known_size(const json& value) {
  return value.is_number() && value.get<std::int64_t>() >= 0 ? value : json();
}

json node_report(const std::string& name, const Scavenged& scavenged, const Seen& seen) {
  const auto digest = member(member(seen.compared, "nodes"), name.c_str());
  const auto before = member(seen.baseline, "records");
  const auto after = member(digest, "records");
  json removed;
  if (before.is_number() && after.is_number()) {
    removed = before.get<std::int64_t>() - after.get<std::int64_t>();
  }
  return {{"name", name},
          {"bytes_before", known_size(scavenged.bytes_before)},
          {"bytes_after", known_size(scavenged.bytes_after)},
          {"records_removed", std::move(removed)},
          {"point", scavenged.point},
          {"logical_digest", member(digest, "logical")},
          {"readable_digest", member(digest, "readable")},
          {"readable_digest_before", member(seen.baseline, "readable")}};
}

json differences_of(const json& compared) {
  auto found = member(compared, "differences");
  return found.is_array() ? found : json::array();
}

/// True when every node reads as it did before; null when that was not looked at.
json readable_unchanged(const Seen& seen) {
  const auto before = member(seen.baseline, "readable");
  const auto nodes = member(seen.compared, "nodes");
  if (!before.is_string() || !nodes.is_object() || nodes.empty()) {
    return nullptr;
  }
  for (const auto& [name, digest] : nodes.items()) {
    if (member(digest, "readable") != before) {
      return false;
    }
  }
  return true;
}

std::string why_not_compared(const RunState& run, const Seen& seen) {
  if (run.status == RunStatus::kCancelled) {
    return "the run was cancelled";
  }
  if (run.status == RunStatus::kFailed || seen.to_compare) {
    return "the run ended before that";
  }
  return run.plan->policy.scavenge.compare_digests ? "not every node has an agent"
                                                   : "the policy does not ask for it";
}

}  // namespace

json report(const RunState& run) {
  if (!has_ended(run.status) || run.plan->policy.operation != "scavenge") {
    return nullptr;
  }
  const Seen seen(run);
  auto nodes = json::array();
  json point;
  std::set<std::string> points;
  for (const auto& [name, scavenged] : seen.nodes) {
    nodes.push_back(node_report(name, scavenged, seen));
    points.insert(scavenged.point.dump());
    point = scavenged.point;
  }
  auto notes = json(seen.lines);
  if (points.size() > 1) {
    notes.push_back("the nodes did not all end at the same point");
    point = nullptr;
  }
  if (!member(seen.compared, "compared").is_boolean() ||
      !member(seen.compared, "compared").get<bool>()) {
    notes.push_back("digests were not compared: " +
                    seen.compared.value("reason", why_not_compared(run, seen)));
  }
  for (const auto& [node, reason] : seen.not_ended) {
    notes.push_back(fmt::format("{}: its scavenge was not seen to end{}{}", node,
                                reason.empty() ? "" : ": ", reason));
  }
  if (!seen.not_begun.empty()) {
    notes.push_back(fmt::format("not scavenged: {}", fmt::join(seen.not_begun, ", ")));
  }
  if (const auto difference = member(seen.compared, "firstDifference"); difference.is_object()) {
    notes.push_back("logical digests differ first in chunk " + member(difference, "chunk").dump() +
                    "; nodes with different histories may rightly differ there");
  }
  const auto moves = static_cast<std::int32_t>(run.moves.size());
  return {{"point", std::move(point)},
          {"differences", differences_of(seen.compared)},
          {"planned_leader_moves", run.planned_moves()},
          {"unplanned_leader_moves", moves - run.planned_moves()},
          {"nodes", std::move(nodes)},
          {"timeline", timeline(run)},
          {"digests_equal", member(seen.compared, "equal")},
          {"readable_equal", member(seen.compared, "readableEqual")},
          {"same_point", member(seen.compared, "samePoint")},
          {"readable_unchanged", readable_unchanged(seen)},
          {"notes", std::move(notes)}};
}

}  // namespace verger::controller::views
