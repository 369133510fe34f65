// What people read of a redaction that has ended.
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

json node_report(const char* name, const char* state, bool proven) {
  return {{"node", name},
          {"state", state},
          {"proven", proven},
          {"blanked", state == std::string_view("redacted") ? 2 : 0},
          {"already", state == std::string_view("already") ? 2 : 0},
          {"missing", json::array()},
          {"chunks", json::array({json::object()})},
          {"searched_files", state == std::string_view("redacted") ? 9 : 0},
          {"searched_bytes", 4'194'304},
          {"left", json::array()}};
}

json redaction_report(const char* outcome) {
  return {{"outcome", outcome},
          {"requester", "alice"},
          {"reason", "request 4711"},
          {"events", json::array({json::object(), json::object()})},
          {"nodes", json::array({node_report("n2", "redacted", true)})},
          {"backups", json::array()},
          {"problems", json::array()},
          {"out_of_reach", json::array({"disk snapshots"})},
          {"timeline", nullptr},
          {"notes", json::array()}};
}

TEST(RedactionReport, SaysWhoWantedItWhatWasSearchedAndWhatHoldsTheData) {
  auto report = redaction_report("redacted");
  report["nodes"].push_back(node_report("n3", "already", false));
  report["backups"] = json::array(
      {{{"generation", "g1"}, {"node", "n2"}, {"command", "verger backup delete orders g1"}}});
  EXPECT_THAT(
      said(print_redaction_report, report),
      AllOf(HasSubstr("redacted: 2 records, on all nodes\nrequested by alice: request 4711"),
            HasSubstr("n2: 2 records in 1 chunk files, while it was stopped; searched 9 files, 4 "
                      "MiB: no text is left"),
            HasSubstr("n3: 2 records were redacted before"),
            HasSubstr("backup g1 of n2 may hold the data; delete it with: verger backup delete "
                      "orders g1"),
            HasSubstr("not reached: disk snapshots")));
}

TEST(RedactionReport, SaysLoudlyWhatIsNotProven) {
  auto report = redaction_report("not-proven");
  report["nodes"][0]["proven"] = false;
  report["nodes"][0]["left"] = json::array({"n2: /db/a.tmp: the text, or a part of it, 1 times"});
  EXPECT_THAT(said(print_redaction_report, report),
              AllOf(HasSubstr("NOT PROVEN on all of them"), HasSubstr("4 MiB: NOT PROVEN"),
                    HasSubstr("left: n2: /db/a.tmp")));
  EXPECT_THAT(said(print_redaction_report, redaction_report("unfinished")),
              HasSubstr("UNFINISHED: some nodes still have the data"));
}

TEST(Redact, TakesEventsFromOnePlaceAlone) {
  const auto both = verger_without_vergerd({"redact", "plan", "orders", "--events", "1@a",
                                            "--events-file", "/dev/null", "--reason", "x"});
  EXPECT_EQ(both.status, kUsage) << both.err;
  const auto gone = verger_without_vergerd(
      {"redact", "plan", "orders", "--events-file", "/nonexistent/events", "--reason", "x"});
  EXPECT_EQ(gone.status, kUsage);
  EXPECT_THAT(gone.err, HasSubstr("/nonexistent/events: cannot be read"));
}

}  // namespace
}  // namespace verger::cli
