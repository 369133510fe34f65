#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <set>

#include "planner/gate_table.h"
#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;

class OpenApi : public ::testing::Test {
 protected:
  ApiHarness a_;
};

/// What in `value` is not as the schema says, and what the schema does not name; empty: nothing.
std::string wrong_by_schema(const json& document, const json& schema, const json& value,
                            const std::string& where) {
  if (schema.contains("$ref")) {
    const auto name = schema["$ref"].get<std::string>();
    return wrong_by_schema(document,
                           document["components"]["schemas"].at(name.substr(name.rfind('/') + 1)),
                           value, where);
  }
  if (schema.contains("anyOf")) {
    return value.is_null() ? "" : wrong_by_schema(document, schema["anyOf"][0], value, where);
  }
  const auto type = schema.value("type", std::string());
  const bool fits =
      type.empty() || (type == "string" && value.is_string()) ||
      (type == "integer" && value.is_number_integer()) || (type == "number" && value.is_number()) ||
      (type == "boolean" && value.is_boolean()) || (type == "array" && value.is_array()) ||
      (type == "object" && value.is_object());
  if (!fits) {
    return where + " is no " + type + ": " + value.dump();
  }
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end()) {
    return where + " is none of " + schema["enum"].dump() + ": " + value.dump();
  }
  if (schema.contains("oneOf") && type == "string" &&
      std::ranges::none_of(schema["oneOf"], [&](const json& choice) {
        return choice.contains("pattern")
                   ? std::regex_search(value.get<std::string>(),
                                       std::regex(choice["pattern"].get<std::string>()))
                   : std::ranges::find(choice["enum"], value) != choice["enum"].end();
      })) {
    return where + " is none of " + schema["oneOf"].dump() + ": " + value.dump();
  }
  if (schema.contains("items")) {
    for (const auto& each : value) {
      if (auto wrong = wrong_by_schema(document, schema["items"], each, where + "[]");
          !wrong.empty()) {
        return wrong;
      }
    }
  }
  for (const auto& member : schema.value("required", json::array())) {
    if (!value.contains(member.get<std::string>())) {
      return where + " lacks " + member.get<std::string>();
    }
  }
  if (!schema.contains("properties")) {
    return "";
  }
  for (const auto& [key, each] : value.items()) {
    const auto found = schema["properties"].find(key);
    if (found == schema["properties"].end()) {
      return where + " has " + key + ", which the document does not name";
    }
    if (auto wrong = wrong_by_schema(document, *found, each, where + "." + key); !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

/// Every operation of the served document is there, demands the role it says, takes the members
/// it says and no others, and answers with those it says and no others.
TEST_F(OpenApi, TheOpenApiDocumentAndTheImplementationAgree) {
  const auto document = a_.get("/openapi.json");
  EXPECT_EQ(document["openapi"], "3.1.0");
  a_.token = a_.create_token("ann", "admin");
  const auto admin = a_.token;
  const auto viewer = a_.create_token("vic", "viewer");
  const std::string yaml =
      "name: nightly\nclusters: [prod]\nschedule: [{cron: '0 1 * * *', zone: UTC}]\n"
      "windows: {allow: [{from: '00:00', to: '06:00', zone: UTC}]}\n";
  ASSERT_EQ(a_.call("PUT", "/policies/nightly", {{"yaml", yaml}}).status, 200);
  a_.h.cluster.scavenge_takes = std::chrono::minutes(10);
  const auto hash = a_.planned();

  // In this order each can be carried out.
  struct Asked {
    std::string id;
    std::string path;
    json body{};
  };
  const std::vector<Asked> asked{
      {"listClusters", "/clusters"},
      {"getCluster", "/clusters/prod"},
      {"updateCluster", "/clusters/prod", {{"labels", {{"tier", "gold"}}}, {"reason", "new"}}},
      {"discoverCluster", "/discoveries", {{"url", "http://10.0.0.1:2113"}, {"name", "orders"}}},
      {"makePlan",
       "/clusters/prod/plans",
       {{"operation", "scavenge"}, {"policy", "nightly"}, {"parameters", {{"threads", 2}}}}},
      {"listPlans", "/clusters/prod/plans"},
      {"getPlan", "/plans/" + hash},
      {"applyPlan", "/plans/" + hash + "/apply", json::object()},
      {"getSchedule", "/clusters/prod/schedule"},
      {"getCertificates", "/clusters/prod/certificates"},
      {"getBackupRepositories", "/clusters/prod/backup-repositories"},
      {"listBackups", "/clusters/prod/backups"},
      {"validatePolicy", "/policies/validate", {{"yaml", yaml}}},
      {"diffPolicy", "/policies/diff", {{"yaml", yaml + "enabled: false\n"}}},
      {"applyPolicy", "/policies/nightly", {{"yaml", yaml}}},
      {"listPolicies", "/policies"},
      {"getPolicy", "/policies/nightly"},
      {"testNotifications", "/policies/nightly/notifications/test", {{"reason", "new"}}},
      {"listRuns", "/runs"},
      {"getRun", "/runs/RUN"},
      {"getRunGates", "/runs/RUN/gates"},
      {"getEvents", "/events"},
      {"getAudit", "/audit"},
      {"verifyAudit", "/audit/verify"},
      {"getJournal", "/admin/journal"},
      {"compactJournal", "/admin/compact", {{"reason", "a small disk"}}},
      {"createToken", "/tokens", {{"name", "eve"}, {"role", "operator"}}},
      {"listTokens", "/tokens"},
      {"whoAmI", "/whoami"},
      {"listAgents", "/agents"},
      {"getOpenApi", "/openapi.json"},
      {"getHealth", "/health"},
      {"pauseRun", "/runs/RUN/pause", {{"mode", "drain"}, {"reason", "noon"}}},
      {"skipNode", "/runs/RUN/skip", {{"node", "n3"}}},
      {"throttleRun", "/runs/RUN/throttle", {{"percent", 50}, {"bytes_per_second", 1'000}}},
      {"cancelRun", "/runs/RUN/cancel", {{"reason", "enough"}}},
      {"pauseCluster", "/clusters/prod/pause", {{"mode", "now"}, {"reason", "noon"}}},
      {"resumeCluster", "/clusters/prod/resume", json::object()},
      {"deletePolicy", "/policies/nightly"},
      {"revokeToken", "/tokens/" + viewer.substr(7, viewer.rfind('_') - 7)},
  };
  // Of these the order or the surroundings are their own tests'.
  std::set<std::string> elsewhere{"addCluster", "removeCluster", "resumeRun", "createAgentToken",
                                  "enrolAgent", "forgetAgent",   "putFile"};
  for (const auto& [path, methods] : document["paths"].items()) {
    ASSERT_TRUE(path.starts_with("/api/v1"));
    for (const auto& [method, operation] : methods.items()) {
      SCOPED_TRACE(method + " " + path);
      const auto found =
          std::ranges::find(asked, operation["operationId"].get<std::string>(), &Asked::id);
      if (found == asked.end()) {
        EXPECT_EQ(elsewhere.erase(operation["operationId"].get<std::string>()), 1U)
            << "no test calls it";
      }
    }
  }
  EXPECT_TRUE(elsewhere.empty());
  std::string run;
  for (auto each : asked) {
    SCOPED_TRACE(each.id);
    if (const auto begin = each.path.find("RUN"); begin != std::string::npos) {
      each.path.replace(begin, 3, run);
    }
    const auto routes = api_routes();
    const auto route = std::ranges::find(routes, each.id, &Route::id);
    ASSERT_NE(route, routes.end());
    std::string method(route->method);
    std::ranges::transform(method, method.begin(),
                           [](char c) { return static_cast<char>(c | 32); });
    const auto& operation = document["paths"]["/api/v1" + std::string(route->path)][method];
    const bool open = operation["x-role"] == "nobody" || operation["x-role"] == "viewer";
    if (!open) {
      a_.token = viewer;
      EXPECT_EQ(a_.call(std::string(route->method), each.path, each.body).status, 403);
    }
    a_.token = admin;
    if (operation.contains("requestBody")) {
      const auto& schema = operation["requestBody"]["content"]["application/json"]["schema"];
      EXPECT_EQ(wrong_by_schema(document, schema, each.body, "body"), "");
      auto more = each.body;
      more["nonsense"] = true;
      const auto refused = a_.call(std::string(route->method), each.path, more);
      EXPECT_EQ(refused.status, 400);
      // It names those that it takes.
      const std::string detail = ApiHarness::json_of(refused)["detail"];
      const std::string name = schema["$ref"];
      auto known = detail.substr(detail.rfind("takes ") + 6) + ",";
      for (const auto& [key, ignored] :
           document["components"]["schemas"][name.substr(name.rfind('/') + 1)]["properties"]
               .items()) {
        EXPECT_TRUE(known.contains(key + ",")) << key << " of the document, but: " << detail;
      }
    }
    const auto answer = a_.call(std::string(route->method), each.path, each.body);
    ASSERT_TRUE(operation["responses"].contains(std::to_string(answer.status))) << answer.body;
    const auto& good = operation["responses"][std::to_string(answer.status)];
    if (good.contains("content")) {
      EXPECT_EQ(wrong_by_schema(document, good["content"]["application/json"]["schema"],
                                ApiHarness::json_of(answer), "answer"),
                "");
    }
    if (each.id == "applyPlan") {
      run = ApiHarness::json_of(answer)["id"];
      ASSERT_TRUE(a_.h.run_until([this] { return a_.h.cluster.node("n2").running.has_value(); }));
      a_.h.run_until([] { return false; }, std::chrono::minutes(1));
    }
  }
}

TEST_F(OpenApi, NamesEachGateOfTheTable) {
  const auto schemas = a_.get("/openapi.json")["components"]["schemas"];
  std::set<std::string> expected;
  for (const auto& entry : planner::gate_table()) {
    expected.emplace(entry.name);
  }
  for (const auto* schema : {"WaitedFor", "NotSeen", "GateState"}) {
    std::set<std::string> named;
    for (const auto& name : schemas.at(schema).at("properties").at("gate").at("oneOf")[0]["enum"]) {
      named.insert(name.get<std::string>());
    }
    EXPECT_EQ(named, expected) << schema;
  }
}

}  // namespace
}  // namespace verger::controller
