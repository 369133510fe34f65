#include "planner/restore/restore_facts.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>
#include <utility>

#include "planner/detail/fact_members.h"

namespace verger::planner {
namespace {

using detail::read_members;
using detail::written_members;

constexpr std::string_view kRestoreFacts = "facts of a restore";

// Members with their names in JSON: a table for each type.
constexpr auto kGenerationMembers =
    std::tuple{std::pair("id", &RestoreGeneration::id),
               std::pair("node", &RestoreGeneration::node),
               std::pair("cluster", &RestoreGeneration::cluster),
               std::pair("serverVersion", &RestoreGeneration::server_version),
               std::pair("takenAt", &RestoreGeneration::taken_at),
               std::pair("verified", &RestoreGeneration::verified),
               std::pair("drilled", &RestoreGeneration::drilled),
               std::pair("failedCheck", &RestoreGeneration::failed_check),
               std::pair("endPosition", &RestoreGeneration::end_position),
               std::pair("restoredBytes", &RestoreGeneration::restored_bytes)};
constexpr auto kNodeMembers =
    std::tuple{std::pair("name", &RestoreNode::name),
               std::pair("agentProblem", &RestoreNode::agent_problem),
               std::pair("repositoryProblem", &RestoreNode::repository_problem),
               std::pair("hasRepository", &RestoreNode::has_repository),
               std::pair("repositoryId", &RestoreNode::repository_id),
               std::pair("hasGeneration", &RestoreNode::has_generation),
               std::pair("damage", &RestoreNode::damage),
               std::pair("serviceProblem", &RestoreNode::service_problem),
               std::pair("keepsFormer", &RestoreNode::keeps_former),
               std::pair("room", &RestoreNode::room)};

}  // namespace

const RestoreNode* RestoreFacts::find(std::string_view name) const {
  const auto found = std::ranges::find(nodes, name, &RestoreNode::name);
  return found == nodes.end() ? nullptr : &*found;
}

Json to_json(const RestoreFacts& facts) {
  Json::Array nodes;
  for (const auto& node : facts.nodes) {
    nodes.push_back(written_members(node, kNodeMembers));
  }
  return Json::Object{{"generation", written_members(facts.generation, kGenerationMembers)},
                      {"generationProblem", facts.generation_problem},
                      {"nodes", std::move(nodes)},
                      {"redactions", facts.redactions}};
}

Result<RestoreFacts> parse_restore_facts(const Json& value) {
  RestoreFacts out;
  constexpr auto kOwnMembers =
      std::make_tuple(std::pair("generationProblem", &RestoreFacts::generation_problem),
                      std::pair("redactions", &RestoreFacts::redactions));
  VERGER_TRY(const auto whole, read_members<RestoreFacts>(value, kOwnMembers, kRestoreFacts));
  out.generation_problem = whole.generation_problem;
  out.redactions = whole.redactions;
  const auto& members = *value.as_object();
  if (const auto found = members.find("generation"); found != members.end()) {
    VERGER_TRY(out.generation,
               read_members<RestoreGeneration>(found->second, kGenerationMembers, kRestoreFacts));
  }
  if (const auto found = members.find("nodes"); found != members.end()) {
    const auto* list = found->second.as_array();
    if (list == nullptr) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("{}: nodes is of another type", kRestoreFacts)};
    }
    for (const auto& each : *list) {
      VERGER_TRY(auto node, read_members<RestoreNode>(each, kNodeMembers, kRestoreFacts));
      out.nodes.push_back(std::move(node));
    }
  }
  return out;
}

}  // namespace verger::planner
