#include "nodeagent/api/agent_facts.h"

#include <nlohmann/json.hpp>

#include "nodeagent/api/detail/facts_members.h"
#include "nodeagent/api/detail/request_document.h"
#include "nodeagent/api/json_fields.h"

namespace verger::api {

using nlohmann::json;

std::string to_text(const AgentFacts& facts) {
  JsonWriter out(1'024);
  out.begin_object();
  write_members(out, facts);
  out.member("serviceControl", facts.service_control);
  if (!facts.start_command.empty()) {
    out.member("startCommand", facts.start_command);
  }
  if (!facts.offline_problem.empty()) {
    out.member("offlineProblem", facts.offline_problem);
  }
  if (facts.online_problem != kOnlineNotTold) {
    out.member("onlineProblem", facts.online_problem);
  }
  if (facts.lost_streams >= 0) {
    out.member("lostStreams", facts.lost_streams);
  }
  if (!facts.warning.empty()) {
    out.member("warning", facts.warning);
  }
  if (!facts.stays_down.empty()) {
    out.member("staysDown", facts.stays_down);
  }
  if (!facts.kept_stopped_by.empty()) {
    out.member("keptStoppedBy", facts.kept_stopped_by);
  }
  if (!facts.kept_restores.empty()) {
    out.name("keptRestores").begin_list();
    for (const auto& generation : facts.kept_restores) {
      out.value(generation);
    }
    out.end_list();
  }
  if (!facts.log_as_of.empty()) {
    out.member("logAsOf", facts.log_as_of);
  }
  if (!facts.database_directory.path.empty()) {
    out.member("databaseDirectory", facts.database_directory.path)
        .member("databaseIdentity", facts.database_directory.identity)
        .member("indexDirectory", facts.index_directory.path)
        .member("indexIdentity", facts.index_directory.identity);
  }
  return out.members_of(facts.more_json).end_object().take();
}

Result<AgentFacts> parse_agent_facts(std::string_view body) {
  AgentFacts out;
  VERGER_TRY(const auto document, JsonDocument::parse(body, "facts"));
  VERGER_TRY(static_cast<NodeFacts&>(out), node_facts_of(document.root()));
  Fields fields(document.root(), "facts");
  fields.read("serviceControl", out.service_control);
  fields.read("startCommand", out.start_command);
  fields.read("offlineProblem", out.offline_problem);
  fields.read("onlineProblem", out.online_problem);
  fields.read("lostStreams", out.lost_streams);
  fields.read("warning", out.warning);
  fields.read("staysDown", out.stays_down);
  fields.read("keptStoppedBy", out.kept_stopped_by);
  fields.each("keptRestores", [&](JsonView element, const std::string& where) -> Result<void> {
    if (!element.is_string()) {
      return Error{Errc::kCorruption, where + ": text was expected"};
    }
    out.kept_restores.emplace_back(element.string());
    return {};
  });
  fields.read("logAsOf", out.log_as_of);
  fields.read("databaseDirectory", out.database_directory.path);
  fields.read("databaseIdentity", out.database_directory.identity);
  fields.read("indexDirectory", out.index_directory.path);
  fields.read("indexIdentity", out.index_directory.identity);
  VERGER_RETURN_IF_ERROR(fields.result());
  return out;
}

json to_json(const std::vector<GateLimit>& gates) {
  auto out = json::array();
  for (const auto& gate : gates) {
    out.push_back({{"name", gate.name}, {"limit", gate.limit}});
  }
  return out;
}

Result<std::vector<GateLimit>> parse_gates(std::string_view parameters_json) {
  VERGER_TRY(const auto document, request_document(parameters_json, "parameters"));
  std::vector<GateLimit> out;
  Fields fields(document.root(), "parameters", Errc::kInvalidArgument);
  fields.each("gates", [&](JsonView element, const std::string& where) -> Result<void> {
    GateLimit gate;
    Fields inner(element, where, Errc::kInvalidArgument);
    inner.require("name");
    inner.read("name", gate.name);
    inner.read("limit", gate.limit);
    VERGER_RETURN_IF_ERROR(inner.result());
    out.push_back(std::move(gate));
    return {};
  });
  VERGER_RETURN_IF_ERROR(fields.result());
  return out;
}

}  // namespace verger::api
