#include "planner/operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "tests/unit/planner/clusters.h"

namespace verger::planner {
namespace {

using ::testing::HasSubstr;

/// A value of the field's type that is not its default.
Json other_value(const Field& field, const Json& value) {
  switch (field.type) {
    case Field::Type::kBoolean:
      return !*value.as_bool();
    case Field::Type::kChoice:
      return field.choices.front() == *value.as_string() ? field.choices.back()
                                                         : field.choices.front();
    case Field::Type::kText:
      return *value.as_string() + "x";
    case Field::Type::kQueries:
      return Json::Array{Json::Object{{"atLeast", ""},
                                      {"atMost", "0.5"},
                                      {"name", "load"},
                                      {"query", "up{a=\"b\"}"},
                                      {"url", "http://127.0.0.1:9090"}}};
    case Field::Type::kInteger:
    case Field::Type::kMilliseconds:
    case Field::Type::kBytes:
      break;
  }
  return *value.as_int() + 1;
}

TEST(Operations, EachFieldIsReadBackAsItWasWritten) {
  for (const auto* operation : operations()) {
    Policy policy;
    policy.name = "all";
    policy.operation = operation->defaults();
    for (const auto* field : fields_of(*operation)) {
      SCOPED_TRACE(field->name);
      const auto value = other_value(*field, field->get(policy));
      ASSERT_TRUE(field->set(policy, value));
      EXPECT_EQ(field->get(policy), value);
    }
    const auto written = to_json(policy);
    const auto& members = *written.as_object()->find(operation->name)->second.as_object();
    EXPECT_EQ(members.size(), fields_of(*operation).size());
    const auto read = parse_policy(written);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(to_json(*read).text(), written.text());
  }
}

TEST(Operations, NoTwoFieldsAreSpelledAlike) {
  for (const auto* operation : operations()) {
    std::set<std::string_view> names;
    std::set<std::string_view> places;
    std::set<std::string> in_api;
    for (const auto* field : fields_of(*operation)) {
      EXPECT_TRUE(names.insert(field->name).second) << field->name;
      EXPECT_TRUE(places.insert(field->place).second) << field->place;
      EXPECT_TRUE(in_api.insert(api_name(*field)).second) << field->name;
      EXPECT_FALSE(field->help.empty()) << field->name;
    }
  }
}

TEST(Operations, OneOfANewerControllerKeepsItsContent) {
  const Json written = Json::Object{{"name", "nightly"},
                                    {"operation", "repaint"},
                                    {"repaint", Json::Object{{"colours", 3}, {"deep", true}}}};
  const auto policy = parse_policy(written);
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ(operation_name(*policy), "repaint");
  EXPECT_EQ(to_json(*policy), written);
  const auto plan = make_plan(testing::cluster(), *policy);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().front().code, "unknown-operation");
  EXPECT_THAT(plan.error().front().hint, HasSubstr("known operations are: scavenge"));
}

TEST(Operations, AValueOfAnotherTypeIsNamed) {
  const auto wrong = parse_policy(
      Json::Object{{"operation", "scavenge"}, {"scavenge", Json::Object{{"threads", "two"}}}});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_THAT(wrong.error().message, HasSubstr("scavenge.threads takes 1 to 4"));
  const auto choice = parse_policy(
      Json::Object{{"operation", "scavenge"}, {"scavenge", Json::Object{{"strategy", "fast"}}}});
  ASSERT_FALSE(choice.has_value());
  EXPECT_THAT(choice.error().message, HasSubstr("rolling, followers-only, concurrent, offline"));
}

TEST(Operations, AStoppedServerDoesNothingThatNeedsIt) {
  ASSERT_NE(find_agent_kind("scavenge"), nullptr);
  EXPECT_TRUE(find_agent_kind("scavenge")->needs_server);
  EXPECT_FALSE(find_agent_kind("offline_scavenge")->needs_server);
  EXPECT_FALSE(find_agent_kind("resign")->touches_files);
  EXPECT_EQ(find_agent_kind("redaction"), nullptr) << "it may be anything";
}

TEST(Operations, ABackupKeepsOthersOutAndItsCheckDoesNot) {
  ASSERT_NE(find_agent_kind("backup"), nullptr);
  EXPECT_TRUE(find_agent_kind("backup")->keeps_others_out);
  EXPECT_TRUE(find_agent_kind("offline_backup")->keeps_others_out);
  EXPECT_FALSE(find_agent_kind("backup_verify")->touches_files);
  EXPECT_FALSE(find_agent_kind("snapshot_backup")->keeps_others_out);
  EXPECT_FALSE(find_agent_kind("snapshot_backup")->touches_files);
  EXPECT_FALSE(find_agent_kind("scavenge")->keeps_others_out);
}

}  // namespace
}  // namespace verger::planner
