#include "planner/resize/resize_facts.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::planner {
namespace {

/// Reads members of one object; a member that is missing leaves the default.
class SizeMembers {
 public:
  explicit SizeMembers(const Json& json) : object_(json.as_object()) {
    if (object_ == nullptr) {
      wrong_ = "it";
    }
  }
  [[nodiscard]] const Json* find(const char* name) const {
    if (object_ == nullptr) {
      return nullptr;
    }
    const auto found = object_->find(name);
    return found == object_->end() ? nullptr : &found->second;
  }
  void read(const char* name, std::string& into) { take(name, into, &Json::as_string); }
  void read(const char* name, std::int64_t& into) { take(name, into, &Json::as_int); }
  void read(const char* name, bool& into) { take(name, into, &Json::as_bool); }
  [[nodiscard]] Result<void> result() const {
    return wrong_.empty()
               ? Result<void>()
               : Error{Errc::kInvalidArgument,
                       fmt::format("facts of cluster sizes: {} is of another type", wrong_)};
  }

 private:
  template <class T>
  void take(const char* name, T& into, const T* (Json::*as)() const) {
    const auto* value = find(name);
    if (value == nullptr) {
      return;
    }
    if (const auto* read = (value->*as)()) {
      into = *read;
    } else {
      wrong_ = name;
    }
  }
  const Json::Object* object_;
  std::string wrong_;
};

}  // namespace

const SizeNode* ResizeFacts::find(std::string_view name) const {
  const auto found = std::ranges::find(nodes, name, &SizeNode::name);
  return found == nodes.end() ? nullptr : &*found;
}

Json to_json(const ResizeFacts& facts) {
  Json::Array nodes;
  for (const auto& each : facts.nodes) {
    nodes.push_back(Json::Object{{"agentProblem", each.agent_problem},
                                 {"file", each.file},
                                 {"fileProblem", each.file_problem},
                                 {"name", each.name},
                                 {"seeds", each.seeds},
                                 {"seedsFrom", each.seeds_from},
                                 {"serviceControl", each.service_control},
                                 {"size", each.size}});
  }
  Json::Object out{{"nodes", std::move(nodes)}};
  if (facts.restore) {
    out.insert_or_assign("restore", to_json(*facts.restore));
  }
  return out;
}

Result<ResizeFacts> parse_resize_facts(const Json& value) {
  ResizeFacts out;
  const SizeMembers whole(value);
  VERGER_RETURN_IF_ERROR(whole.result());
  const auto* nodes = whole.find("nodes");
  const auto* list = nodes == nullptr ? nullptr : nodes->as_array();
  if (list == nullptr) {
    return Error{Errc::kInvalidArgument, "facts of cluster sizes: nodes is of another type"};
  }
  for (const auto& each : *list) {
    SizeNode node;
    SizeMembers members(each);
    members.read("agentProblem", node.agent_problem);
    members.read("file", node.file);
    members.read("fileProblem", node.file_problem);
    members.read("name", node.name);
    members.read("seeds", node.seeds);
    members.read("seedsFrom", node.seeds_from);
    members.read("serviceControl", node.service_control);
    members.read("size", node.size);
    VERGER_RETURN_IF_ERROR(members.result());
    out.nodes.push_back(std::move(node));
  }
  if (const auto* restore = whole.find("restore")) {
    VERGER_TRY(out.restore, parse_restore_facts(*restore));
  }
  return out;
}

}  // namespace verger::planner
