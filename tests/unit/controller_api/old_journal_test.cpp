#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "engine/base/bytes.h"
#include "planner/gate_table.h"
#include "tests/support/fixtures.h"
#include "tests/support/temp_directory.h"
#include "tests/unit/controller_api/api_harness.h"

// tests/fixtures/journal: what an earlier controller wrote (see its README), and what its API then
// said of that.
namespace verger::controller {
namespace {

using nlohmann::json;
using testing::ApiHarness;

/// Where `now` lacks a member of `then`, or has another value; what is new is not listed.
void list_lost(const json& then, const json& now, const std::string& path,
               std::vector<std::string>& out) {
  if (then.is_object() && now.is_object()) {
    for (const auto& [name, value] : then.items()) {
      const auto found = now.find(name);
      if (found == now.end()) {
        out.push_back(path + "/" + name + " is gone");
      } else {
        list_lost(value, *found, path + "/" + name, out);
      }
    }
  } else if (then.is_array() && now.is_array() && then.size() == now.size()) {
    for (std::size_t i = 0; i < then.size(); ++i) {
      list_lost(then[i], now[i], fmt::format("{}/{}", path, i), out);
    }
  } else if (then != now) {
    out.push_back(fmt::format("{} was {}, is {}", path, then.dump(), now.dump()));
  }
}

/// What was said then, with the gates' names of today: all else must be as it was.
void rename_gates(json& then) {
  if (then.is_object()) {
    for (auto& [name, value] : then.items()) {
      if (name == "gate") {
        value = planner::current_gate_name(value.get<std::string>());
      } else if (name == "gates" && value.is_array()) {
        for (auto& text : value) {  // "lag-below 16 MiB"
          const auto gate = text.get<std::string>();
          const auto end = std::min(gate.find(' '), gate.size());
          text = planner::current_gate_name(gate.substr(0, end)) + gate.substr(end);
        }
      } else {
        rename_gates(value);
      }
    }
  } else if (then.is_array()) {
    std::ranges::for_each(then, rename_gates);
  }
}

class OldJournal : public ::testing::Test {
 protected:
  OldJournal() {
    test::unpack_fixture("journal/scavenges-of-one-struct.tar.zst", files_.path());
    a_.crash();
    a_.defaults = {};
    a_.defaults.limits.election_settle_ms = 10'000;  // that vergerd's default
    const auto content = text_of("journal.db");
    EXPECT_TRUE(write_file_durably(a_.h.disk, "/state/old.db", as_bytes(content)).has_value());
    a_.h.journal_path = "/state/old.db";
    a_.boot();
  }

  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ifstream file(files_.path() / name, std::ios::binary);
    EXPECT_TRUE(file.good()) << name;
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
  }
  /// Names in the fixture that begin so, and their content.
  [[nodiscard]] std::map<std::string, json> answers(const std::string& prefix) const {
    std::map<std::string, json> out;
    for (const auto& entry : std::filesystem::directory_iterator(files_.path())) {
      if (const auto name = entry.path().filename().string(); name.starts_with(prefix)) {
        out[name] = json::parse(text_of(name));
      }
    }
    EXPECT_FALSE(out.empty());
    return out;
  }
  std::vector<std::string> lost(const json& then, const std::string& path) {
    const auto answer = a_.call("GET", path);
    EXPECT_EQ(answer.status, 200) << answer.body;
    std::vector<std::string> out;
    list_lost(then, ApiHarness::json_of(answer), "", out);
    return out;
  }

  test::TempDirectory files_;
  ApiHarness a_;
};

TEST_F(OldJournal, ItsPlansKeepTheirHashes) {
  for (auto& [name, then] : answers("plan-")) {
    SCOPED_TRACE(name);
    ASSERT_THAT(then.dump(), ::testing::HasSubstr("\"nobody-scavenges\""));
    rename_gates(then);
    then.erase("created_at");  // since a restart it is the event's time, milliseconds later
    EXPECT_THAT(lost(then, "/plans/" + then.at("hash").get<std::string>()), ::testing::IsEmpty());
  }
}

TEST_F(OldJournal, ItsRunsAreShownWithTheirReports) {
  for (auto& [name, then] : answers("run-")) {
    SCOPED_TRACE(name);
    rename_gates(then);
    then.erase("hours");  // depends on the time
    EXPECT_EQ(then.at("state"), "done");
    EXPECT_THAT(lost(then, "/runs/" + then.at("id").get<std::string>()), ::testing::IsEmpty());
  }
}

TEST_F(OldJournal, ItsPoliciesSayWhatTheySaid) {
  for (auto& [name, then] : answers("policy-")) {
    SCOPED_TRACE(name);
    then.erase("selected");  // depends on the time
    then.erase("selected_now");
    EXPECT_THAT(lost(then, "/policies/" + then.at("name").get<std::string>()),
                ::testing::IsEmpty());
  }
}

TEST_F(OldJournal, ItsRunsAreTheHistoryOfNewEstimates) {
  const auto runs = a_.h.executor->runs("demo");
  ASSERT_EQ(runs.size(), 2U);
  for (const auto& run : runs) {
    EXPECT_EQ(run->operation, "scavenge");
    EXPECT_FALSE(run->durations.empty());
  }
}

}  // namespace
}  // namespace verger::controller
