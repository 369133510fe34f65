#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "controller/scheduler/admission.h"
#include "tests/unit/controller_scheduler/times.h"

namespace verger::controller {
namespace {

using namespace testing;
using nlohmann::json;

std::filesystem::path policies() {
  return std::filesystem::path(VERGER_TEST_FIXTURES).parent_path().parent_path() / "policies";
}
std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}
json schema() { return json::parse(text_of_file(policies() / "policy.schema.json")); }

/// Keys of a YAML mapping that the schema of that place does not list; the other way round they are
/// found by the reader itself.
void unlisted(const YAML::Node& node, const json& place, const std::string& path,
              std::vector<std::string>& out) {
  if (node.IsSequence() && place.contains("items")) {
    for (const auto& each : node) {
      unlisted(each, place["items"], path + "[]", out);
    }
  }
  if (!node.IsMap() || !place.contains("properties")) {
    return;
  }
  for (const auto& member : node) {
    const auto key = member.first.Scalar();
    if (!place["properties"].contains(key)) {
      out.push_back(path + "." + key);
    } else {
      unlisted(member.second, place["properties"][key], path + "." + key, out);
    }
  }
}

TEST(ReadyMadePolicies, AreReadAndAdmittedAndKeepToTheSchema) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(policies())) {
    if (entry.path().extension() != ".yaml") {
      continue;
    }
    SCOPED_TRACE(entry.path().filename());
    ++count;
    const auto yaml = text_of_file(entry.path());
    const auto policy = parse_schedule_policy(yaml);
    ASSERT_TRUE(policy.has_value()) << to_text(policy.error());
    EXPECT_EQ(policy->name, entry.path().stem());
    const auto admitted = admit(*policy, at("2026-11-21 12:00"));
    EXPECT_TRUE(admitted.has_value()) << to_text(admitted.error());
    std::vector<std::string> wrong;
    unlisted(YAML::Load(yaml), schema(), "", wrong);
    EXPECT_THAT(wrong, ::testing::IsEmpty());
  }
  EXPECT_GE(count, 4);
}

TEST(ReadyMadePolicies, TheSchemaListsWhatTheReaderTakes) {
  // The reader names all its keys when it meets one that is like none of them.
  const auto problems = parse_schedule_policy("name: a\nclusters: [b]\nzzzzzzzzzzzz: 1\n");
  ASSERT_FALSE(problems.has_value());
  const auto message = problems.error().front().message;
  const auto list = message.substr(message.find("known are: ") + 11);
  std::set<std::string> read;
  std::istringstream in(list);
  for (std::string key; std::getline(in, key, ',');) {
    read.insert(key.substr(key.find_first_not_of(' ')));
  }
  std::set<std::string> listed;
  for (const auto& [key, value] : schema()["properties"].items()) {
    listed.insert(key);
  }
  EXPECT_EQ(read, listed);
}

}  // namespace
}  // namespace verger::controller
