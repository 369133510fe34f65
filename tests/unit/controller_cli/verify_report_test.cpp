// What people read of a verification, of healing, and of nodes' ways in a scavenge.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/cli/operations/reports.h"
#include "tests/unit/controller_cli/cli_output.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json verified(const char* name, const char* state) {
  return {{"node", name},
          {"state", state},
          {"reason", ""},
          {"chunk_files", 5},
          {"chunk_bytes", 4'194'304},
          {"records", 70'000},
          {"tables", 2},
          {"entries", 60'000},
          {"missing_streams", 0},
          {"damaged", 0},
          {"damage", json::array()},
          {"remedies", json::array()},
          {"notes", json::array()},
          {"seconds", 3.0}};
}

TEST(VerifyReport, HasFindingsWithFileOffsetAndRemedy) {
  auto damaged = verified("n2", "damaged");
  damaged["damaged"] = 2;
  damaged["damage"] = json::array({{{"file", "chunk-000003.000000"},
                                    {"offset", 128},
                                    {"text", "checksum"},
                                    {"remedy", "refill"}},
                                   {{"file", "chunk-000004.000000"},
                                    {"offset", nullptr},
                                    {"text", "is missing"},
                                    {"remedy", "refill"}}});
  damaged["remedies"] = json::array({"n2: its log: refill the node"});
  auto missed = verified("n3", "not-looked-at");
  missed["reason"] = "its agent does not answer";
  const json report{{"outcome", "damaged"},
                    {"nodes", json::array({verified("n1", "sound"), damaged, missed})},
                    {"timeline", nullptr},
                    {"notes", json::array()}};
  EXPECT_THAT(said(print_verify_report, report),
              AllOf(HasSubstr("n1: sound; 5 chunk files (4 MiB), 70,000 records, 2 tables, 60,000 "
                              "index entries"),
                    HasSubstr("n2: DAMAGED, 2 findings"),
                    HasSubstr("  chunk-000003.000000 at 128: checksum"),
                    HasSubstr("  chunk-000004.000000: is missing"),
                    HasSubstr("  remedy: n2: its log: refill the node"),
                    HasSubstr("n3: NOT LOOKED AT: its agent does not answer")));
}

TEST(HealReport, HasTheCountsOfEachNode) {
  const json report{{"outcome", "unfinished"},
                    {"nodes", json::array({{{"node", "n2"},
                                            {"state", "healed"},
                                            {"lost_before", 82},
                                            {"lost_after", 0},
                                            {"streams_read", 20},
                                            {"not_found", json::array()}},
                                           {{"node", "n3"}, {"state", "not-done"}}})},
                    {"timeline", nullptr},
                    {"notes", json::array()}};
  EXPECT_THAT(said(print_heal_report, report),
              AllOf(HasSubstr("n2: had lost 82 streams, now 0; 20 streams read, 0 not found"),
                    HasSubstr("n3: not done")));
}

TEST(ScavengeReport, SaysWhichNodesTheirAgentsScavenged) {
  const auto of = [](const char* name, const char* way, const json& switched) {
    return json{{"name", name}, {"way", way}, {"chunks_switched", switched}, {"point", nullptr}};
  };
  const json report{
      {"nodes", json::array({of("n1", "server", nullptr), of("n2", "online", 38),
                             of("n3", "offline", nullptr), of("n4", "online", nullptr)})},
      {"planned_leader_moves", 0},
      {"unplanned_leader_moves", 0},
      {"timeline", nullptr},
      {"notes", json::array()}};
  EXPECT_THAT(said(print_scavenge_report, report),
              AllOf(HasSubstr("n2: 38 chunks switched into its running server"),
                    HasSubstr("n3: by its agent, while it was stopped"), Not(HasSubstr("n1: ")),
                    Not(HasSubstr("n4: "))));
}

TEST(Heal, NamesWhatIsHealed) {
  EXPECT_EQ(verger_without_vergerd({"heal", "orders"}).status, kUsage);
}

}  // namespace
}  // namespace verger::cli
