#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "controller/executor/plan_json.h"
#include "controller/scheduler/admission.h"
#include "planner/operations.h"
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
  std::set<std::string> read;
  for (const auto* operation : planner::operations()) {
    const auto problems = parse_schedule_policy(
        fmt::format("{{name: a, clusters: [b], operation: {}, zzzzzzzzzzzz: 1}}", operation->name));
    ASSERT_FALSE(problems.has_value());
    const auto message = problems.error().front().message;
    const auto list = message.substr(message.find("known are: ") + 11);
    std::istringstream in(list);
    for (std::string key; std::getline(in, key, ',');) {
      read.insert(key.substr(key.find_first_not_of(' ')));
    }
  }
  std::set<std::string> listed;
  for (const auto& [key, value] : schema()["properties"].items()) {
    listed.insert(key);
  }
  EXPECT_EQ(read, listed);
}

/// The default in a policy file's spelling, for a field that has one there.
json default_of(const planner::Field& field, const json& written) {
  std::int64_t number = 0;
  if (field.type == planner::Field::Type::kMilliseconds) {
    number = std::chrono::milliseconds(*parse_length(written.get<std::string>())).count();
  } else if (field.type == planner::Field::Type::kBytes) {
    number = *parse_size(written.get<std::string>());
  } else {
    return written;
  }
  return number;
}

TEST(ReadyMadePolicies, TheSchemaSaysOfEachFieldWhatItsTableSays) {
  const auto known = schema();
  json names = json::array();
  for (const auto* operation : planner::operations()) {
    names.push_back(operation->name);
    planner::Policy defaults;
    defaults.operation = operation->defaults();
    for (const auto* field : planner::fields_of(*operation)) {
      SCOPED_TRACE(field->place);
      auto pointer = "/properties/" + std::string(field->place);
      for (auto at = pointer.find('.'); at != std::string::npos; at = pointer.find('.')) {
        pointer.replace(at, 1, "/properties/");
      }
      const json::json_pointer place(pointer);
      ASSERT_TRUE(known.contains(place));
      const auto& key = known.at(place);
      if (field->type == planner::Field::Type::kInteger) {
        EXPECT_EQ(key.at("minimum"), field->low);
        EXPECT_EQ(key.value("maximum", field->high), field->high);
      }
      if (field->type == planner::Field::Type::kChoice) {
        EXPECT_EQ(key.at("enum").get<std::set<std::string>>(),
                  std::set<std::string>(field->choices.begin(), field->choices.end()));
      }
      if (key.contains("default")) {
        EXPECT_EQ(default_of(*field, key["default"]), to_nlohmann(field->get(defaults)));
      }
    }
  }
  EXPECT_EQ(known["properties"]["operation"]["enum"], names);
}

/// Calls `visit` with the path and the schema of each key, "gates.queries[].name".
void each_key(const json& place, const std::string& path,
              const std::function<void(const std::string&, const json&)>& visit) {
  if (!place.contains("properties")) {
    return;
  }
  for (const auto& [key, schema] : place["properties"].items()) {
    visit(path + key, schema);
    each_key(schema, path + key + ".", visit);
    if (schema.contains("items")) {
      each_key(schema["items"], path + key + "[].", visit);
    }
  }
}

std::string cell(const json& value) {
  auto text = value.is_string() ? value.get<std::string>() : value.dump();
  for (auto at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, "\\");
  }
  return text;
}

/// A policy with one more key; JSON is YAML.
json policy_with(const std::string& path, const json& value, std::string_view operation) {
  json out{{"name", "a"}, {"clusters", {"b"}}, {"operation", operation}};
  if (path == "labels") {
    out.erase("clusters");
  }
  auto pointer = "/" + path;
  std::ranges::replace(pointer, '.', '/');
  out[json::json_pointer(pointer)] = value;
  return out;
}

/// The first operation whose policies may have the key with this value; empty, and the test fails:
/// none.
std::string_view operation_with(const std::string& path, const json& value) {
  std::string why;
  for (const auto* operation : planner::operations()) {
    const auto policy = parse_schedule_policy(policy_with(path, value, operation->name).dump());
    if (policy) {
      return operation->name;
    }
    why += to_text(policy.error());
  }
  ADD_FAILURE() << why;
  return "";
}

TEST(PolicyKeys, EachHasAMeaningAndAnExampleThatIsTaken) {
  each_key(schema(), "", [](const std::string& path, const json& key) {
    SCOPED_TRACE(path);
    EXPECT_GT(key.value("description", std::string()).size(), 10U);
    ASSERT_TRUE(key.contains("examples") && !key["examples"].empty());
    if (path.find("[]") != std::string::npos) {
      return;  // the list's own example has it
    }
    for (const auto& example : key["examples"]) {
      EXPECT_NE(operation_with(path, example), "") << example.dump();
    }
  });
}

TEST(PolicyKeys, DefaultsAreThoseOfTheReader) {
  int compared = 0;
  each_key(schema(), "", [&compared](const std::string& path, const json& key) {
    if (!key.contains("default") || key["default"].empty() ||
        path.find("[]") != std::string::npos) {
      return;
    }
    SCOPED_TRACE(path);
    const auto operation = operation_with(path, key["default"]);
    const auto with = parse_schedule_policy(policy_with(path, key["default"], operation).dump());
    const auto without =
        parse_schedule_policy(fmt::format("{{name: a, clusters: [b], operation: {}}}", operation));
    ASSERT_TRUE(with.has_value() && without.has_value());
    EXPECT_EQ(to_json(*with), to_json(*without));
    ++compared;
  });
  EXPECT_GT(compared, 20);
}

TEST(PolicyKeys, TheDocumentationHasThemAsTheSchemaHasThem) {
  const auto page = text_of_file(policies().parent_path() / "docs" / "operations" / "policies.md");
  each_key(schema(), "", [&page](const std::string& path, const json& key) {
    const auto fallback = !key.contains("default") ? "–"
                          : key["default"].empty() || key["default"] == json("")
                              ? "none"
                              : "`" + cell(key["default"]) + "`";
    const auto row = fmt::format("| `{}` | {} | {} | `{}` |", path, cell(key["description"]),
                                 fallback, cell(key["examples"][0]));
    EXPECT_THAT(page, ::testing::HasSubstr(row + "\n")) << "a row is missing or another one";
  });
}

}  // namespace
}  // namespace verger::controller
