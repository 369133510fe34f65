#include "planner/gate_table.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <sstream>

#include "planner/gates.h"
#include "planner/operations.h"
#include "tests/unit/planner/backup_plans.h"
#include "tests/unit/planner/certificate_change.h"
#include "tests/unit/planner/clusters.h"

// The table against all that must agree with it: the checks, the plans, the operators' page. The
// agent's checks: tests/unit/nodeagent_operations; the API's document: tests/unit/controller_api.
namespace verger::planner {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

std::string source_text(const std::string& path) {
  const auto root = std::filesystem::path(VERGER_TEST_FIXTURES).parent_path().parent_path();
  std::ifstream file(root / path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::vector<std::string> names_of_all() {
  std::vector<std::string> out;
  for (const auto& entry : gate_table()) {
    out.emplace_back(entry.name);
  }
  return out;
}

/// The lines of docs/operations/gates.md from the table's heading to the next empty line.
std::string table_of_page(const std::string& heading) {
  const auto page = source_text("docs/operations/gates.md");
  const auto begin = page.find(heading);
  EXPECT_NE(begin, std::string::npos) << heading;
  return begin == std::string::npos ? "" : page.substr(begin, page.find("\n\n", begin) - begin);
}

TEST(GateTable, IsTheOneOfTheOperatorsPage) {
  const std::string heading =
      "| gate | closed while | value | limit | when planning | by the agent |\n"
      "|---|---|---|---|---|---|";
  auto expected = heading;
  for (const auto& entry : gate_table()) {
    expected += fmt::format("\n| `{}` | {} | {} | {} | {} | {} |", entry.name, entry.closed_while,
                            entry.measures, entry.limit, entry.refuses_plans ? "yes" : "",
                            entry.by_agent ? "yes" : "");
  }
  EXPECT_EQ(table_of_page(heading), expected);
}

TEST(GateTable, HasTheAlertTimesOfTheOperatorsPage) {
  const std::string heading = "| severity | alert after | gates |\n|---|---|---|";
  auto expected = heading;
  for (const auto severity : {GateSeverity::kFault, GateSeverity::kUnsettled, GateSeverity::kDelay,
                              GateSeverity::kBusy, GateSeverity::kSchedule}) {
    std::vector<std::string> names;
    for (const auto& entry : gate_table()) {
      if (entry.severity == severity) {
        names.push_back(fmt::format("`{}`", entry.name));
      }
    }
    const auto minutes = alert_after_ms(severity) / 60'000;
    expected += fmt::format("\n| {} | {} | {} |", to_string(severity),
                            minutes == 0 ? std::string("none") : fmt::format("{} min", minutes),
                            fmt::join(names, ", "));
  }
  EXPECT_EQ(table_of_page(heading), expected);
}

TEST(GateTable, HasAnEntryForEachCheck) {
  const auto header = source_text("planner/detail/gate_checks.h");
  const std::regex check(R"(\nvoid (\w+)\(const Look& look, States& out\);)");
  std::vector<std::string> checks;
  for (auto found = std::sregex_iterator(header.begin(), header.end(), check);
       found != std::sregex_iterator(); ++found) {
    auto name = (*found)[1].str();
    std::ranges::replace(name, '_', '-');
    checks.push_back(std::move(name));
  }
  EXPECT_THAT(checks, UnorderedElementsAreArray(names_of_all()));
}

TEST(GateTable, NamesEachGateAndFormerNameOnce) {
  std::set<std::string_view> names;
  for (const auto& entry : gate_table()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(find_gate(entry.name), &entry);
    if (!entry.former_name.empty()) {
      EXPECT_TRUE(names.insert(entry.former_name).second) << entry.former_name;
      EXPECT_EQ(find_gate(entry.former_name), &entry);
      EXPECT_EQ(current_gate_name(entry.former_name), entry.name);
    }
  }
  EXPECT_EQ(current_gate_name("hours"), "maintenance-window");
  EXPECT_EQ(current_gate_name("queries:load"), "queries:load");
  EXPECT_EQ(find_gate("queries:load"), find_gate("queries"));
  EXPECT_EQ(find_gate("a-gate-of-tomorrow"), nullptr);
  EXPECT_EQ(find_gate(""), nullptr);
}

/// A cluster of which all is observed that gates look at, and a policy with all that they wait for.
ClusterSnapshot all_observed() {
  auto snapshot = testing::cluster();
  snapshot.leader_stable_ms = 3'600'000;
  snapshot.hours = Hours{.open = true, .since = snapshot.taken_at, .until = {}, .reason = {}};
  snapshot.queries = {{"load", "0.1", "at most 0.5", "", true}};
  for (auto& node : snapshot.nodes) {
    node.url = "https://" + node.name + ":2113";
    node.clock = ClockSkew{3, 1};
    node.certificates = {{"0A", "node", Ticks(kMaxTicks)}};
    node.index_merging = false;
    node.agent->service_control = true;
  }
  return snapshot;
}

TEST(GateTable, IsWhatThePlansName) {
  std::set<std::string> planned;
  for (const auto strategy : {Strategy::kRolling, Strategy::kConcurrent, Strategy::kOffline}) {
    for (const auto foreign : {ForeignRule::kAdopt, ForeignRule::kWait}) {
      Policy policy;
      policy.gates.queries = {{"load", "http://127.0.0.1:9090", "q", "", "0.5"}};
      scavenge_of(policy).strategy = strategy;
      scavenge_of(policy).foreign = foreign;
      const auto plan = make_plan(all_observed(), policy);
      ASSERT_TRUE(plan) << plan.error().front().message;
      for (const auto& stage : plan->stages) {
        for (const auto& group : stage.groups) {
          for (const auto& step : group) {
            for (const auto& gate : step.gates) {
              EXPECT_EQ(current_gate_name(gate.name), gate.name);
              planned.insert(gate.name);
            }
          }
        }
      }
    }
  }
  testing::CertificateChange change;
  change.snapshot = all_observed();
  const auto rollout = change.plan();
  ASSERT_TRUE(rollout) << rollout.error().front().message;
  for (const auto& group : rollout->stages.front().groups) {
    for (const auto& gate : group.front().gates) {
      planned.insert(gate.name);
    }
  }
  testing::BackupPlans backup;
  backup.snapshot = all_observed();
  const auto copy = backup.plan();
  ASSERT_TRUE(copy) << copy.error().front().message;
  for (const auto& gate : copy->stages.front().groups.front().front().gates) {
    planned.insert(gate.name);
  }
  EXPECT_THAT(planned, UnorderedElementsAreArray(names_of_all()));
}

TEST(GateTable, AnOpenGateTellsItsValueAndLimit) {
  const auto snapshot = all_observed();
  for (const auto& entry : gate_table()) {
    SCOPED_TRACE(std::string(entry.name));
    const auto states = evaluate({std::string(entry.name), 1'000'000}, snapshot, "n2");
    for (const auto& state : states) {
      EXPECT_EQ(state.verdict, GateVerdict::kOpen) << state.reason;
      EXPECT_EQ(find_gate(state.gate), &entry);
      EXPECT_THAT(state.value, Not(IsEmpty()));
      if (entry.name != kMaintenanceWindow) {  // open without an end
        EXPECT_THAT(state.limit, Not(IsEmpty()));
      }
    }
  }
}

TEST(GateTable, TakesItsLimitsFromPlacesOfAPolicy) {
  std::set<std::string> places{"windows"};
  for (const auto* operation : operations()) {
    for (const auto* field : fields_of(*operation)) {
      places.insert(std::string(field->place));
    }
  }
  for (const auto& entry : gate_table()) {
    const std::string limit(entry.limit);
    const std::regex quoted("`([^`]+)`");
    for (auto found = std::sregex_iterator(limit.begin(), limit.end(), quoted);
         found != std::sregex_iterator(); ++found) {
      EXPECT_TRUE(places.contains((*found)[1].str())) << (*found)[1].str() << " of " << entry.name;
    }
  }
}

TEST(GateTable, TextsHaveTheUnitOfTheLimit) {
  EXPECT_EQ(gate_text({"lag-below", 16 << 20U}), "lag-below 16 MiB");
  EXPECT_EQ(gate_text({"certificates", 2 * 3'600'000}), "certificates 2 h");
  EXPECT_EQ(gate_text({"clocks", 60'000}), "clocks 60 s");
  EXPECT_EQ(gate_text({"leader-settled", 1'500}), "leader-settled 1500 ms");
  EXPECT_EQ(gate_text({"quorum-margin", 1}), "quorum-margin 1");
  EXPECT_EQ(gate_text({"one-leader", 0}), "one-leader");
}

}  // namespace
}  // namespace verger::planner
