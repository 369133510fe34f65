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
}

}  // namespace
}  // namespace verger::controller
