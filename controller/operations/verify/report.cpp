#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/operations/report_support.h"
#include "controller/operations/verify/step_kinds.h"
#include "controller/operations/verify/verify_module.h"

namespace verger::controller::verifications {
namespace {

using nlohmann::json;

json verified_node(const planner::Step& step, const StepState* state) {
  const bool ended = state != nullptr && state->status == StepStatus::kDone;
  const json result = ended ? *state->result : json::object();
  const auto count = [&result](const char* name) { return result.value(name, std::int64_t{0}); };
  const auto list = [&result](const char* name) { return result.value(name, json::array()); };
  return {{"node", step.node},
          {"state", !ended                 ? "not-looked-at"
                    : count("damaged") > 0 ? "damaged"
                                           : "sound"},
          {"reason", ended || state == nullptr ? std::string() : state->reason},
          {"chunk_files", count("chunk_files")},
          {"chunk_bytes", count("chunk_bytes")},
          {"records", count("records")},
          {"tables", count("tables")},
          {"entries", count("entries")},
          {"missing_streams", count("missing_streams")},
          {"damaged", count("damaged")},
          {"damage", list("damage")},
          {"remedies", list("remedies")},
          {"notes", list("notes")},
          {"seconds", state == nullptr ? 0.0 : static_cast<double>(state->active_ms) / 1'000.0}};
}

}  // namespace

json report(const RunState& run, json timeline) {
  auto nodes = json::array();
  bool damaged = false;
  bool missed = false;
  reports::each_step(run, [&](const planner::Step& step, const StepState* state) {
    if (step.kind == names::kVerify) {
      nodes.push_back(verified_node(step, state));
      damaged = damaged || nodes.back().at("state") == "damaged";
      missed = missed || nodes.back().at("state") == "not-looked-at";
    }
  });
  auto notes = json::array();
  if (damaged) {
    notes.push_back("make no backup of a damaged node, and scavenge it only once it is cured");
  }
  return {{"outcome", damaged  ? "damaged"
                      : missed ? "unfinished"
                               : "sound"},
          {"nodes", std::move(nodes)},
          {"timeline", std::move(timeline)},
          {"notes", std::move(notes)}};
}

}  // namespace verger::controller::verifications
