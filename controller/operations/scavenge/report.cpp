#include <fmt/format.h>
#include <map>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/operations/scavenge/scavenge_module.h"
#include "planner/operation.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;

/// A member that may be missing or null.
json member(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? json() : *found;
}

/// What the node's own scavenges of this run did. Bytes before the first and after the last of
/// them, of the same chunks.
struct Scavenged {
  json bytes_before;
  json bytes_after;
  json chunks_compared;
  json chunks_switched;  ///< sum; null: its server rewrote them, or its agent while it was stopped
  std::string_view way = "server";  ///< of the last of them
  json space_saved;                 ///< sum
  json records_removed;             ///< sum
  json point;
  bool resumed = false;  ///< what was saved before an interruption is not in the sums

  void take(std::string_view kind, const json& result, bool interrupted);
  /// Only starts before its own scavenge are in the sums, which found nothing to finish: what its
  /// own one did was not seen.
  void forget_zeros();
};

void add_number(json& sum, const json& value) {
  if (value.is_number_integer()) {
    sum = (sum.is_number_integer() ? sum.get<std::int64_t>() : 0) + value.get<std::int64_t>();
  }
}

void Scavenged::take(std::string_view kind, const json& result, bool interrupted) {
  way = kind == "online_scavenge" ? "online" : kind == "offline_scavenge" ? "offline" : "server";
  point = member(result, "point");
  if (!result.contains("scavenge_id")) {
    return;  // there was nothing left to do: what was seen before stays
  }
  // A step of a run that an older controller began has sizes of different moments.
  const bool comparable =
      member(result, "chunks_compared").is_number() && member(result, "bytes_after").is_number();
  bytes_before = comparable ? member(result, "bytes_before") : json();
  bytes_after = comparable ? member(result, "bytes_after") : json();
  chunks_compared = comparable ? member(result, "chunks_compared") : json();
  add_number(chunks_switched, member(result, "chunks_switched"));
  add_number(space_saved, member(result, "space_saved"));
  add_number(records_removed, member(result, "records_removed"));
  resumed = resumed || interrupted;
}

void Scavenged::forget_zeros() {
  for (auto* sum : {&space_saved, &records_removed}) {
    if (*sum == 0) {
      *sum = json();
    }
  }
}

/// What the steps of a finished scavenge saw, sorted by what they are about.
struct Seen {
  std::map<std::string, Scavenged> nodes;  ///< by name
  json compared = json::object();          ///< result of compare_digests
  json baseline = json::object();          ///< result of record_digest: before anything was removed
  std::string witness{};                   ///< whose that is
  bool to_compare = false;                 ///< the plan has a step for it
  std::vector<json> lines{};               ///< what steps want a person to read
  std::set<std::string> not_begun{};       ///< nodes
  std::map<std::string, std::string> not_ended{};  ///< nodes, and why

  explicit Seen(const RunState& run) {
    for (const auto& stage : run.plan->stages) {
      collect(run, stage);
    }
    for (auto& [name, scavenged] : nodes) {
      if (not_begun.contains(name) || not_ended.contains(name)) {
        scavenged.forget_zeros();
      }
    }
  }

 private:
  static bool is_scavenge(const planner::Step& step) {
    return planner::ScavengePolicy::operation().is_work(step);
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
        const auto& result = *state->second.result;
        for (const auto& line : result.value("report", json::array())) {
          lines.push_back(line);
        }
        if (is_scavenge(step)) {
          nodes[step.node].take(step.kind, result, was_interrupted(state->second));
        } else if (step.kind == "compare_digests") {
          compared = result;
        } else if (step.kind == "record_digest") {
          baseline = result;
          witness = step.node;
        }
      }
    }
  }
};

/// Where the node is: further than the run took it, where another scavenge came in between.
json point_of(const Scavenged& scavenged, const json& compared) {
  const auto last = member(compared, "last_finished");
  return scavenged.point.is_object() && last.is_object() &&
                 last.value("number", -1LL) > scavenged.point.value("number", -1LL)
             ? last
             : scavenged.point;
}

json node_report(const std::string& name, const Scavenged& scavenged, const Seen& seen) {
  const auto digest = member(member(seen.compared, "nodes"), name.c_str());
  auto removed = scavenged.records_removed;
  // Its own digests, before and after, tell as well; those of another node do not.
  const auto before = member(seen.baseline, "records");
  const auto after = member(digest, "records");
  if (removed.is_null() && seen.witness == name && before.is_number() && after.is_number()) {
    removed = before.get<std::int64_t>() - after.get<std::int64_t>();
  }
  return {{"name", name},
          {"bytes_before", scavenged.bytes_before},
          {"bytes_after", scavenged.bytes_after},
          {"chunks_compared", scavenged.chunks_compared},
          {"way", scavenged.way},
          {"chunks_switched", scavenged.chunks_switched},
          {"space_saved", scavenged.space_saved},
          {"records_removed", std::move(removed)},
          {"point", point_of(scavenged, digest)},
          {"logical_digest", member(digest, "logical")},
          {"readable_digest", member(digest, "readable")},
          {"readable_digest_before",
           seen.witness == name ? member(seen.baseline, "readable") : json()}};
}

/// The sums of a node's scavenge that its row of the report has.
std::string_view counted_by(const Scavenged& scavenged) {
  if (scavenged.way == "online") {
    return "space saved, records removed and chunks switched are";
  }
  return scavenged.records_removed.is_null() ? "space saved is"
                                             : "space saved and records removed are";
}

json differences_of(const json& compared) {
  auto found = member(compared, "differences");
  return found.is_array() ? found : json::array();
}

/// True when every node reads as it did before; null when that was not looked at. A node that was
/// scavenged beyond the run's point rightly reads less.
json readable_unchanged(const Seen& seen) {
  const auto before = member(seen.baseline, "readable");
  const auto nodes = member(seen.compared, "nodes");
  if (!before.is_string() || !nodes.is_object() || nodes.empty()) {
    return nullptr;
  }
  const auto point = seen.compared.value("point", std::int64_t{-1});
  json unchanged;
  for (const auto& [name, digest] : nodes.items()) {
    if (member(digest, "readable").is_null()) {
      return nullptr;
    }
    const auto last = member(digest, "last_finished");
    if (member(digest, "readable") == before) {
      unchanged = true;
    } else if (!last.is_object() || last.value("number", std::int64_t{-1}) <= point) {
      return false;
    }
  }
  return unchanged;
}

std::string why_not_compared(const RunState& run, const Seen& seen) {
  if (run.status == RunStatus::kCancelled) {
    return "the run was cancelled";
  }
  if (run.status == RunStatus::kFailed || seen.to_compare) {
    return "the run ended before that";
  }
  if (!scavenge_of(run.plan->policy).compare_digests) {
    return "the policy does not ask for it";
  }
  return seen.nodes.size() < 2 ? "there is no other node to compare with"
                               : "not every node has an agent";
}

}  // namespace

json report(const RunState& run, json timeline) {
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
  if (member(seen.compared, "compared") != json(true)) {
    notes.push_back("digests were not compared: " +
                    seen.compared.value("reason", why_not_compared(run, seen)));
  } else if (!member(seen.baseline, "readable").is_string()) {
    notes.push_back(
        fmt::format("what clients can read was not compared with what it was before: {}",
                    seen.baseline.value("reason", std::string("it was not recorded"))));
  }
  for (const auto& [name, scavenged] : seen.nodes) {
    if (scavenged.resumed && !scavenged.space_saved.is_null()) {
      notes.push_back(fmt::format(
          "{}: its scavenge was interrupted and resumed; {} what was counted after that", name,
          counted_by(scavenged)));
    }
  }
  for (const auto& [node, reason] : seen.not_ended) {
    notes.push_back(fmt::format("{}: its scavenge was not seen to end{}{}", node,
                                reason.empty() ? "" : ": ", reason));
  }
  if (!seen.not_begun.empty()) {
    notes.push_back(fmt::format("not scavenged: {}", fmt::join(seen.not_begun, ", ")));
  }
  if (const auto difference = member(seen.compared, "first_difference"); difference.is_object()) {
    notes.push_back("logical digests differ first in chunk " + member(difference, "chunk").dump() +
                    "; nodes with different histories may rightly differ there");
  }
  if (timeline.is_object()) {
    timeline["scavenge_seconds"] = timeline["work_seconds"];  // the member's former name
  }
  const auto moves = static_cast<std::int32_t>(run.moves.size());
  return {{"point", std::move(point)},
          {"differences", differences_of(seen.compared)},
          {"planned_leader_moves", run.planned_moves()},
          {"unplanned_leader_moves", moves - run.planned_moves()},
          {"nodes", std::move(nodes)},
          {"timeline", std::move(timeline)},
          {"digests_equal", member(seen.compared, "equal")},
          {"readable_equal", member(seen.compared, "readable_equal")},
          {"same_point", member(seen.compared, "same_point")},
          {"readable_unchanged", readable_unchanged(seen)},
          {"notes", std::move(notes)}};
}

}  // namespace verger::controller::scavenge
