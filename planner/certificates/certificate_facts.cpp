#include "planner/certificates/certificate_facts.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace verger::planner {
namespace {

/// Members of a node with their names in JSON.
constexpr std::pair<const char*, std::string CertificateNodeFacts::*> kTexts[] = {
    {"changeProblem", &CertificateNodeFacts::change_problem},
    {"commonName", &CertificateNodeFacts::common_name},
    {"name", &CertificateNodeFacts::name},
    {"nextCommonName", &CertificateNodeFacts::next_common_name},
    {"nextNotAfter", &CertificateNodeFacts::next_not_after},
    {"nextSerial", &CertificateNodeFacts::next_serial},
    {"notAfter", &CertificateNodeFacts::not_after},
    {"serial", &CertificateNodeFacts::serial}};
constexpr std::pair<const char*, bool CertificateNodeFacts::*> kTruths[] = {
    {"leafChanges", &CertificateNodeFacts::leaf_changes},
    {"rootsChange", &CertificateNodeFacts::roots_change}};
constexpr std::pair<const char*, std::vector<std::string> CertificateNodeFacts::*> kLists[] = {
    {"dnsNames", &CertificateNodeFacts::dns_names},
    {"ipAddresses", &CertificateNodeFacts::ip_addresses}};

Error wrong_member(std::string_view name, std::string_view takes) {
  return {Errc::kInvalidArgument, fmt::format("facts of certificates: {} takes {}", name, takes)};
}

Result<void> read_truth(const Json::Object& members, const char* name, bool& into) {
  if (const auto found = members.find(name); found != members.end()) {
    const auto* truth = found->second.as_bool();
    if (truth == nullptr) {
      return wrong_member(name, "true or false");
    }
    into = *truth;
  }
  return {};
}

Result<CertificateNodeFacts> parse_node(const Json& value) {
  const auto* members = value.as_object();
  if (members == nullptr) {
    return wrong_member("each of nodes", "an object");
  }
  CertificateNodeFacts out;
  for (const auto& [name, into] : kTexts) {
    if (const auto found = members->find(name); found != members->end()) {
      const auto* text = found->second.as_string();
      if (text == nullptr) {
        return wrong_member(name, "a text");
      }
      out.*into = *text;
    }
  }
  for (const auto& [name, into] : kTruths) {
    VERGER_RETURN_IF_ERROR(read_truth(*members, name, out.*into));
  }
  for (const auto& [name, into] : kLists) {
    const auto found = members->find(name);
    if (found == members->end()) {
      continue;
    }
    const auto* list = found->second.as_array();
    if (list == nullptr ||
        !std::ranges::all_of(*list, [](const Json& each) { return each.as_string() != nullptr; })) {
      return wrong_member(name, "a list of texts");
    }
    for (const auto& each : *list) {
      (out.*into).push_back(*each.as_string());
    }
  }
  return out;
}

}  // namespace

const CertificateNodeFacts* CertificateFacts::find(std::string_view name) const {
  const auto found = std::ranges::find(nodes, name, &CertificateNodeFacts::name);
  return found == nodes.end() ? nullptr : &*found;
}

Json to_json(const CertificateFacts& facts) {
  Json::Array nodes;
  for (const auto& node : facts.nodes) {
    Json::Object members;
    for (const auto& [name, from] : kTexts) {
      members[name] = node.*from;
    }
    for (const auto& [name, from] : kTruths) {
      members[name] = node.*from;
    }
    for (const auto& [name, from] : kLists) {
      Json::Array list;
      for (const auto& each : node.*from) {
        list.emplace_back(each);
      }
      members[name] = std::move(list);
    }
    nodes.emplace_back(std::move(members));
  }
  return Json::Object{{"newRoots", facts.new_roots},
                      {"nodes", std::move(nodes)},
                      {"oldRootsGo", facts.old_roots_go}};
}

Result<CertificateFacts> parse_certificate_facts(const Json& value) {
  const auto* members = value.as_object();
  if (members == nullptr) {
    return wrong_member("it", "an object");
  }
  CertificateFacts out;
  VERGER_RETURN_IF_ERROR(read_truth(*members, "newRoots", out.new_roots));
  VERGER_RETURN_IF_ERROR(read_truth(*members, "oldRootsGo", out.old_roots_go));
  if (const auto found = members->find("nodes"); found != members->end()) {
    const auto* list = found->second.as_array();
    if (list == nullptr) {
      return wrong_member("nodes", "a list");
    }
    for (const auto& each : *list) {
      VERGER_TRY(auto node, parse_node(each));
      out.nodes.push_back(std::move(node));
    }
  }
  return out;
}

}  // namespace verger::planner
