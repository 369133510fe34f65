#include "planner/operations.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/operations/operation_modules.h"
#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OperationModules, ThereIsOneForEachOperationOfThePlanner) {
  ASSERT_EQ(operation_modules().size(), planner::operations().size());
  const auto kinds = standard_step_kinds();
  for (const auto* operation : planner::operations()) {
    SCOPED_TRACE(operation->name);
    const auto* module = find_operation_module(operation->name);
    ASSERT_NE(module, nullptr);
    EXPECT_NE(std::ranges::find(module->schemas, module->report_schema, &ApiSchema::name),
              module->schemas.end());
    for (const auto kind : operation->work_steps) {
      EXPECT_NE(kinds.find(kind), nullptr) << kind;
    }
  }
}

TEST(OperationModules, TheApiDocumentSaysWhatMayBeAskedOfAnOperation) {
  ApiHarness a;
  const auto schemas = a.get("/openapi.json")["components"]["schemas"];
  EXPECT_THAT(schemas["NewPlan"]["properties"]["operation"]["enum"], Contains("scavenge"));
  EXPECT_THAT(schemas["NewPlan"]["properties"]["parameters"].dump(),
              HasSubstr("#/components/schemas/ScavengeParameters\""));
  const auto& asked = schemas["ScavengeParameters"];
  EXPECT_EQ(asked["additionalProperties"], false);
  EXPECT_EQ(asked["properties"].size(), 4U);
  EXPECT_THAT(asked["properties"]["strategy"]["enum"],
              ElementsAre("rolling", "followers-only", "concurrent", "offline", "online", "auto"));
  const auto& planned = schemas["ScavengePlannedParameters"];
  EXPECT_THAT(planned["required"],
              ElementsAre("threads", "threshold", "throttle_percent", "strategy"));
  EXPECT_TRUE(planned["properties"].contains("leader_threads"));
}

/// A form for a plan is made of this.
TEST(OperationModules, TheApiDocumentSaysWhatAParameterIsAndWhatItIsWithoutBeingNamed) {
  ApiHarness a;
  const auto schemas = a.get("/openapi.json")["components"]["schemas"];
  std::vector<std::string_view> described;
  for (const auto& each : schemas["NewPlan"]["properties"]["parameters"]["oneOf"]) {
    const auto reference = each["$ref"].get<std::string>();
    const auto& asked = schemas[reference.substr(reference.rfind('/') + 1)];
    SCOPED_TRACE(asked["x-operation"]);
    const auto* operation =
        planner::find_operation(asked["x-operation"].get_ref<const std::string&>());
    ASSERT_NE(operation, nullptr);
    described.push_back(operation->name);
    EXPECT_EQ(asked["description"], operation->summary);
    EXPECT_EQ(asked["x-order"].size(), asked["properties"].size());
    for (const auto& name : asked["x-order"]) {
      EXPECT_TRUE(asked["properties"].contains(name.get_ref<const std::string&>())) << name;
    }
    for (const auto& [name, field] : asked["properties"].items()) {
      SCOPED_TRACE(name);
      EXPECT_NE(field["description"], "");
      ASSERT_TRUE(field.contains("default"));
      if (field["type"] == "integer") {
        EXPECT_GE(field["default"], field["minimum"]);
        EXPECT_TRUE(field.contains("maximum") != field.contains("x-unit"));
        EXPECT_LE(field["default"], field.value("maximum", field["default"]));
      } else if (field.contains("enum")) {
        EXPECT_THAT(field["enum"], Contains(field["default"]));
      } else {
        EXPECT_EQ(field["default"].type_name(), field["type"].get<std::string>());
      }
    }
  }
  EXPECT_EQ(described.size(), planner::operations().size());
  EXPECT_EQ(schemas["BackupParameters"]["x-order"][0], "task") << "as in the operation's table";
  EXPECT_EQ(schemas["BackupParameters"]["properties"]["bytes_per_second"]["x-unit"], "bytes");
  EXPECT_EQ(schemas["CertificatesParameters"]["properties"]["window_ms"]["x-unit"], "milliseconds");
  EXPECT_EQ(schemas["ScavengeParameters"]["properties"]["threads"]["maximum"], 4);
  EXPECT_FALSE(schemas["ScavengePlannedParameters"]["properties"]["threads"].contains("default"));
}

TEST(OperationModules, ARequestForAnUnknownOperationIsAnsweredWithThoseThatAreKnown) {
  ApiHarness a;
  const auto ask = [&a](const json& body) {
    return ApiHarness::json_of(a.call("POST", "/clusters/prod/plans", body))
        .value("detail", std::string());
  };
  EXPECT_THAT(ask({{"operation", "repaint"}}), HasSubstr(planner::known_operations()));
  EXPECT_THAT(ask({{"operation", "scavenge"}, {"parameters", {{"colour", 1}}}}),
              HasSubstr("parameter colour is not known; known are: threads, threshold, "
                        "throttle_percent, strategy"));
  EXPECT_THAT(ask({{"operation", "scavenge"}, {"parameters", {{"strategy", "fast"}}}}),
              HasSubstr("it takes rolling, followers-only, concurrent, offline"));
  EXPECT_THAT(ask({{"operation", "scavenge"}, {"parameters", {{"threads", 1.5}}}}),
              HasSubstr("parameter threads must be an integer of 32 bits"));
  EXPECT_THAT(ask({{"operation", "backup"}, {"parameters", {{"copies", 0}}}}),
              HasSubstr("parameter copies is 0; it takes 1 to 100"));
}

}  // namespace
}  // namespace verger::controller
