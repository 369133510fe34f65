#include "planner/policy.h"

#include <fmt/format.h>

#include "planner/detail/make_field.h"
#include "planner/operations.h"

namespace verger::planner {

std::string_view to_string(PauseRule rule) { return rule == PauseRule::kStop ? "stop" : "leave"; }

namespace detail {

Json encoded(const std::vector<QueryBlocker>& queries) {
  Json::Array out;
  for (const auto& each : queries) {
    out.push_back(Json::Object{{"atLeast", each.at_least},
                               {"atMost", each.at_most},
                               {"name", each.name},
                               {"query", each.query},
                               {"url", each.url}});
  }
  return out;
}

bool decode(const Json& json, std::vector<QueryBlocker>& into) {
  const auto* list = json.as_array();
  if (list == nullptr) {
    return false;
  }
  std::vector<QueryBlocker> out;
  for (const auto& each : *list) {
    const auto* members = each.as_object();
    auto& query = out.emplace_back();
    for (const auto& [name, member] :
         {std::pair("name", &QueryBlocker::name), std::pair("url", &QueryBlocker::url),
          std::pair("query", &QueryBlocker::query), std::pair("atLeast", &QueryBlocker::at_least),
          std::pair("atMost", &QueryBlocker::at_most)}) {
      const auto found = members == nullptr ? Json::Object::const_iterator() : members->find(name);
      if (members == nullptr || found == members->end() || found->second.as_string() == nullptr) {
        return false;
      }
      query.*member = *found->second.as_string();
    }
  }
  into = std::move(out);
  return true;
}

}  // namespace detail

Json to_json(const Policy& policy) {
  const std::string name(operation_name(policy));
  Json::Object out{{"name", policy.name}, {"operation", name}};
  const auto* operation = find_operation(name);
  if (operation == nullptr) {
    if (const auto& content = std::get<UnknownOperation>(policy.operation).content;
        !content.is_null()) {
      out[name] = content;
    }
    return out;
  }
  Policy defaults;
  defaults.operation = operation->defaults();
  Json::Object members;
  for (const auto* field : fields_of(*operation)) {
    auto value = field->get(policy);
    if (field->always || value != field->get(defaults)) {
      members.emplace(field->name, std::move(value));
    }
  }
  out[name] = std::move(members);
  return out;
}

Result<Policy> parse_policy(const Json& value) {
  const auto wrong = [](std::string_view member, std::string_view takes) {
    return Error{Errc::kInvalidArgument, fmt::format("policy: {} takes {}", member, takes)};
  };
  const auto* members = value.as_object();
  if (members == nullptr) {
    return wrong("it", "an object");
  }
  Policy out;
  std::string name(operation_name(out));
  for (const auto& [member, into] : {std::pair("name", &out.name), std::pair("operation", &name)}) {
    const auto found = members->find(member);
    if (found != members->end()) {
      if (found->second.as_string() == nullptr) {
        return wrong(member, "a text");
      }
      *into = *found->second.as_string();
    }
  }
  const auto found = members->find(name);
  const auto* operation = find_operation(name);
  if (operation == nullptr) {
    out.operation =
        UnknownOperation{.name = name, .content = found == members->end() ? Json() : found->second};
    return out;
  }
  out.operation = operation->defaults();
  if (found == members->end()) {
    return out;
  }
  const auto* given = found->second.as_object();
  if (given == nullptr) {
    return wrong(name, "an object");
  }
  for (const auto* field : fields_of(*operation)) {
    const auto own = given->find(field->name);
    if (own != given->end() && !field->set(out, own->second)) {
      return wrong(fmt::format("{}.{}", name, field->name), values_of(*field));
    }
  }
  return out;
}

}  // namespace verger::planner
