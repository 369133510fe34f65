#include "planner/resize/resize_facts.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>
#include <utility>

#include "planner/detail/fact_members.h"

namespace verger::planner {
namespace {

constexpr std::string_view kSizeFacts = "facts of cluster sizes";

/// Members with their names in JSON.
constexpr auto kSizeMembers = std::tuple{std::pair("agentProblem", &SizeNode::agent_problem),
                                         std::pair("file", &SizeNode::file),
                                         std::pair("fileProblem", &SizeNode::file_problem),
                                         std::pair("name", &SizeNode::name),
                                         std::pair("seeds", &SizeNode::seeds),
                                         std::pair("seedsFrom", &SizeNode::seeds_from),
                                         std::pair("serviceControl", &SizeNode::service_control),
                                         std::pair("size", &SizeNode::size)};

}  // namespace

const SizeNode* ResizeFacts::find(std::string_view name) const {
  const auto found = std::ranges::find(nodes, name, &SizeNode::name);
  return found == nodes.end() ? nullptr : &*found;
}

Json to_json(const ResizeFacts& facts) {
  Json::Array nodes;
  for (const auto& each : facts.nodes) {
    nodes.push_back(detail::written_members(each, kSizeMembers));
  }
  Json::Object out{{"nodes", std::move(nodes)}};
  if (facts.restore) {
    out.insert_or_assign("restore", to_json(*facts.restore));
  }
  return out;
}

Result<ResizeFacts> parse_resize_facts(const Json& value) {
  ResizeFacts out;
  const auto* members = value.as_object();
  if (members == nullptr) {
    return Error{Errc::kInvalidArgument, fmt::format("{}: it is of another type", kSizeFacts)};
  }
  const auto nodes = members->find("nodes");
  const auto* list = nodes == members->end() ? nullptr : nodes->second.as_array();
  if (list == nullptr) {
    return Error{Errc::kInvalidArgument, fmt::format("{}: nodes is of another type", kSizeFacts)};
  }
  for (const auto& each : *list) {
    VERGER_TRY(auto node, detail::read_members<SizeNode>(each, kSizeMembers, kSizeFacts));
    out.nodes.push_back(std::move(node));
  }
  if (const auto restore = members->find("restore"); restore != members->end()) {
    VERGER_TRY(out.restore, parse_restore_facts(restore->second));
  }
  return out;
}

}  // namespace verger::planner
