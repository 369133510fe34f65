// What people read of plans and runs.
#include <csignal>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/cli/interrupt_note.h"
#include "controller/cli/plan_text.h"
#include "controller/cli/run_gates_text.h"
#include "controller/cli/run_text.h"
#include "tests/unit/controller_cli/cli_output.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json plan() {
  return {{"hash", std::string(64, 'a')},
          {"cluster", "orders"},
          {"operation", "scavenge"},
          {"policy", "weekly"},
          {"parameters",
           {{"strategy", "rolling"}, {"threads", 1}, {"threshold", 0}, {"throttle_percent", 100}}},
          {"expected_seconds", {{"min", 60}, {"max", 7'500}}},
          {"expected_from", "sizes"},
          {"stages",
           {{{"id", "scavenge-n1"},
             {"if_put_off", ""},
             {"steps",
              {{{"kind", "scavenge"},
                {"node", "n1"},
                {"gates", {"lag-below 16 MiB", "disk 256 MiB"}},
                {"reason", "the first follower creates the point"},
                {"expected_seconds", {{"min", 60}, {"max", 7'500}}},
                {"cost", ""}}}}},
            {{"id", "move-n1"}, {"if_put_off", "scavenge-n1"}, {"steps", json::array()}}}},
          {"forecast",
           {{{"node", "n1"},
             {"row", "row 2"},
             {"database_bytes", 1'073'741'824},
             {"disk_free_bytes", 33'554'432},
             {"disk_needed_bytes", 536'870'912}}}},
          {"notes", {"closed now"}}};
}

TEST(PlanText, TellsParametersTimeDiskAndGates) {
  EXPECT_THAT(
      said(print_plan, plan()),
      AllOf(HasSubstr("plan " + std::string(64, 'a') + "\n"), HasSubstr("policy weekly"),
            HasSubstr("parameters: strategy rolling, threads 1, threshold 0, "
                      "throttle_percent 100\n"),
            HasSubstr("expected time: 60 s to 2 h 5 min"),
            HasSubstr("gates: lag-below 16 MiB, disk 256 MiB\n"), HasSubstr("n1       1 GiB"),
            HasSubstr("32 MiB"), HasSubstr("512 MiB"), HasSubstr("1 conditional stage hidden")));
}

TEST(PlanText, SaysWhichStagesAreAtomicAndWhatBecomesOfEachNode) {
  auto other = plan();
  EXPECT_THAT(said(print_plan, other), Not(HasSubstr("atomic")));
  other["stages"][0]["atomic"] = true;
  other["parameters"]["set"] = "";
  other["forecast"] = json::array({{{"node", "n1"}, {"row", "0a -> 0b"}}});
  EXPECT_THAT(said(print_plan, other),
              AllOf(HasSubstr("stage 1 is atomic: done on all of its nodes or undone on all"),
                    HasSubstr("n1: 0a -> 0b\n"), HasSubstr("as usual; no earlier run is known"),
                    Not(HasSubstr("bytes to free")), Not(HasSubstr("set"))));
}

TEST(PlanText, DiffersWhereParametersDiffer) {
  auto other = plan();
  other["parameters"]["threshold"] = -1;
  EXPECT_NE(said(print_plan, plan()), said(print_plan, other));
}

TEST(PlanText, TellsWhatTheLastRunFreed) {
  auto later = plan();
  later["expected_from"] = "history";
  later["last_success"] = {{"run", "0123456789abcdef"},
                           {"finished_at", "2026-11-21T03:00:00Z"},
                           {"space_saved", 3'221'225'472}};
  EXPECT_THAT(said(print_plan, later),
              AllOf(HasSubstr("from this cluster's earlier runs"),
                    HasSubstr("bytes to free: unknown; no node reported what run 0123456789ab of "
                              "2026-11-21T03:00:00Z freed\n")));
  later["freed_before"] = {{{"node", "n1"},
                            {"space_saved", 2'147'483'648},
                            {"run", "0123456789abcdef"},
                            {"finished_at", "2026-11-21T03:00:00Z"}},
                           {{"node", "n2"},
                            {"space_saved", 1'073'741'824},
                            {"run", "fedcba9876543210"},
                            {"finished_at", "2026-11-14T03:00:00Z"}}};
  EXPECT_THAT(said(print_plan, later),
              HasSubstr("bytes to free: not estimated; earlier runs freed 3 GiB: "
                        "n1 2 GiB (run 0123456789ab of 2026-11-21T03:00:00Z), "
                        "n2 1 GiB (run fedcba987654 of 2026-11-14T03:00:00Z)\n"));
  EXPECT_THAT(said(print_plan, plan()), HasSubstr("bytes to free: unknown until the first run"));
}

json step(const std::string& state) {
  return {{"id", "scavenge-n1"},      {"kind", "scavenge"}, {"node", "n1"},
          {"state", state},           {"reason", ""},       {"since", "2026-11-22T14:43:00.25Z"},
          {"outcomes", json::array()}};
}

json run_with(json step) {
  return {
      {"id", "0123456789abcdef0123456789abcdef"},
      {"cluster", "orders"},
      {"plan", std::string(64, 'a')},
      {"state", "running"},
      {"reason", ""},
      {"started_by", "ann"},
      {"started_at", "2026-11-22T14:40:00Z"},
      {"finished_at", nullptr},
      {"stages",
       {{{"id", "scavenge-n1"}, {"if_put_off", ""}, {"steps", json::array({std::move(step)})}}}},
      {"alerts", json::array()},
      {"report", nullptr}};
}

TEST(RunText, ShowsEachAttemptWithItsErrorAndTime) {
  auto failed = step("waiting");
  failed["outcomes"] = {{{"attempt", 1},
                         {"outcome", "errored"},
                         {"reason", "errored: No space left on device"},
                         {"at", "2026-11-22T14:43:47.5Z"}}};
  EXPECT_THAT(said(print_run, run_with(failed)),
              HasSubstr("scavenge-n1: attempt 1 errored 2026-11-22T14:43:47Z: No space left on "
                        "device\n"));
}

TEST(RunText, SaysWhyAStepWasNotNeeded) {
  auto resign = step("done");
  resign["kind"] = "resign";
  resign["result"] = {{"not_needed", "n2 leads"}};
  EXPECT_THAT(said(print_run, run_with(resign)), HasSubstr("not needed: n2 leads"));
}
TEST(RunText, SaysThatANodeWasAtThePointAlready) {
  auto scavenge = step("done");
  scavenge["result"] = {{"already", true}, {"point", {{"number", 3}}}};
  EXPECT_THAT(said(print_run, run_with(scavenge)), HasSubstr("already at point 3"));
  auto redaction = step("done");
  redaction["kind"] = "offline_redaction";
  redaction["result"] = {{"already", 1}, {"blanked", 100}};  // a count of records
  EXPECT_THAT(said(print_run, run_with(redaction)), Not(HasSubstr("not needed")));
}

TEST(RunText, ShowsWhenAnAlertWasRaisedAndCleared) {
  auto run = run_with(step("acting"));
  run["alerts"] = {{{"reason", "n3 has not answered for 2 minutes"},
                    {"at", "2026-11-22T14:35:00.1Z"},
                    {"cleared_at", "2026-11-22T14:37:50Z"}},
                   "written by an older vergerd"};
  EXPECT_THAT(said(print_run, run),
              AllOf(HasSubstr("alert: 2026-11-22T14:35:00Z n3 has not answered for 2 minutes "
                              "(cleared at 2026-11-22T14:37:50Z)"),
                    HasSubstr("alert: written by an older vergerd")));
}

TEST(RunText, NamesEachNodeThatWasUndoneOrNot) {
  auto run = run_with(step("done"));
  run["undo"] = {{{"node", "n1"},
                  {"state", "undone"},
                  {"at", "2026-11-22T14:35:00.0000000Z"},
                  {"reason", ""},
                  {"commands", json::array()}},
                 {{"node", "n2"},
                  {"state", "not-undone"},
                  {"at", "2026-11-22T14:40:00.0000000Z"},
                  {"reason", "lower-n2: not in time: connection refused"},
                  {"commands", json::array({"curl -X POST x"})}}};
  EXPECT_THAT(said(print_run, run),
              AllOf(HasSubstr("undo: n1: undone, seen at 2026-11-22T14:35:00Z\n"),
                    HasSubstr("undo: n2: NOT undone: lower-n2: not in time: connection refused\n"
                              "  run: curl -X POST x\n")));
}

TEST(RunText, SaysWhatEndsTheWaitForANodeThatCannotBeSeen) {
  auto run = run_with(step("unknown"));
  EXPECT_THAT(
      said(print_run, run),
      HasSubstr("n1 holds the run up until it can be seen; to leave it out: verger run skip "
                "0123456789ab n1\n"));
  // A node that is left out of an atomic stage is not what happens.
  run["stages"][0]["atomic"] = true;
  EXPECT_THAT(said(print_run, run),
              HasSubstr("n1 holds the run up until it can be seen; to undo what is done on all "
                        "nodes: verger run cancel 0123456789ab\n"));
  run["state"] = "cancelling";
  run["undo"] = {{{"node", "n1"},
                  {"state", "under-way"},
                  {"at", nullptr},
                  {"reason", ""},
                  {"commands", json::array()}}};
  EXPECT_THAT(said(print_run, run), AllOf(HasSubstr("undo: n1: undo is under way\n"),
                                          Not(HasSubstr("holds the run up"))));
  EXPECT_EQ(intent_text("skip", run, "n1", false),
            "run 0123456789ab: n1 is being undone, which leaving it out does not shorten; follow "
            "it with: verger run watch 0123456789ab");
}

TEST(RunGatesText, HasOpenGatesWithValueAndLimit) {
  const auto gate = [](const char* name, const char* state, const char* value) {
    return json{{"gate", name},    {"node", "n1"},    {"state", state},  {"value", value},
                {"limit", "60 s"}, {"reason", "why"}, {"since", nullptr}};
  };
  const json gates{{"run", "0123456789abcdef"},
                   {"steps",
                    {{{"step", "scavenge-n3"},
                      {"state", "waiting"},
                      {"evaluated_at", "2026-11-22T14:37:50.123Z"},
                      {"gates", {gate("clocks", "closed", "90 s"), gate("disk", "not_seen", "")}}},
                     {{"step", "scavenge-n2"},
                      {"state", "acting"},
                      {"evaluated_at", nullptr},
                      {"gates", {gate("lag-below", "open", "12 KiB")}}}}}};
  const auto text = said(print_run_gates, gates);
  EXPECT_THAT(text, HasSubstr("scavenge-n3 waiting, gates checked at 2026-11-22T14:37:50Z\n"));
  EXPECT_THAT(text, HasSubstr("scavenge-n2 acting, gates not checked since vergerd's start\n"));
  EXPECT_THAT(text, ::testing::ContainsRegex("clocks +n1 +closed +90 s +60 s"));
  EXPECT_THAT(text, ::testing::ContainsRegex("disk +n1 +not seen"));
  EXPECT_THAT(text, ::testing::ContainsRegex("lag-below +n1 +open +12 KiB +60 s"));
  EXPECT_THAT(said(print_run_gates, {{"run", "0123"}, {"steps", json::array()}}),
              HasSubstr("no step waits"));
}

json waiting_for_a_clock() {
  auto waiting = step("waiting");
  waiting["waiting_for"] = {{{"gate", "clocks"},
                             {"node", "n3"},
                             {"value", "90 s"},
                             {"limit", "60 s"},
                             {"since", "2026-11-22T14:43:00Z"},
                             {"alert_at", "2026-11-22T15:13:00Z"},
                             {"reason", "why"}}};
  return waiting;
}

TEST(RunText, SaysWhenAnAlertFiresWhileTheRunWaits) {
  auto run = run_with(waiting_for_a_clock());
  EXPECT_THAT(said(print_run, run),
              AllOf(HasSubstr("waits for"),
                    HasSubstr("an alert fires at 2026-11-22T15:13:00Z if it is still closed; to "
                              "leave n1 out: verger run skip 0123456789ab n1\n")));
  run["alerts"] = {{{"step", "scavenge-n1"},
                    {"reason", "scavenge-n1 has waited for 30 min"},
                    {"at", "2026-11-22T15:13:00Z"},
                    {"cleared_at", nullptr}}};
  EXPECT_THAT(said(print_run, run), Not(HasSubstr("an alert fires"))) << "it has";
}

TEST(RunText, NoAlertFiresOnceTheRunHasEnded) {
  auto run = run_with(waiting_for_a_clock());
  run["state"] = "cancelled";
  run["finished_at"] = "2026-11-22T14:50:00Z";
  EXPECT_THAT(said(print_run, run),
              AllOf(HasSubstr("waited for"), HasSubstr("90 s"), Not(HasSubstr("an alert fires"))));
}

TEST(RunText, AnIntentSaysWhatItChangedAndNotTheStateOfBefore) {
  auto run = run_with(step("waiting"));
  run["state"] = "pausing";
  EXPECT_EQ(intent_text("pause", run, "", false), "run 0123456789ab: pausing");
  run["state"] = "waiting";
  EXPECT_EQ(intent_text("skip", run, "n2", false),
            "run 0123456789ab: n2 is left out; follow it with: verger run watch 0123456789ab");
  EXPECT_EQ(intent_text("skip", run, "n2", true),
            "run 0123456789ab: n2 is left out; what may still run there holds nothing back; "
            "follow it with: verger run watch 0123456789ab");
  run["throttle"] = {{"percent", 20}, {"bytes_per_second", 20 * 1'048'576}};
  EXPECT_THAT(intent_text("throttle", run, "", false),
              HasSubstr("its jobs work 20 % of the time from now on, up to 20 MiB/s; follow"));
  run["throttle"] = {{"percent", 100}, {"bytes_per_second", 0}};
  EXPECT_THAT(intent_text("throttle", run, "", false),
              HasSubstr("100 % of the time from now on, with no limit in bytes; follow"));
}

TEST(RunText, SaysWhenItResumesAndHowLongItTakesThen) {
  auto run = run_with(step("waiting"));
  run["expected_end"] = {{"earliest", "2026-11-22T15:39:00Z"},
                         {"latest", "2026-11-22T15:44:00Z"},
                         {"overdue", false},
                         {"resumes_at", "2026-11-22T15:29:00Z"},
                         {"seconds_left", {{"min", 600}, {"max", 900}}}};
  run["hours"] = {{"open", false}, {"until", "2026-11-22T15:29:00Z"}};
  EXPECT_EQ(expected_end_text(run),
            "resumes 2026-11-22T15:29:00Z, then about 10 min to 15 min: expected to end between "
            "2026-11-22T15:39:00Z and 2026-11-22T15:44:00Z");
  run["expected_end"] = nullptr;
  EXPECT_EQ(expected_end_text(run), "window opens at 2026-11-22T15:29:00Z");
}

TEST(RunText, AnOverdueRunNamesItsEarliestEnd) {
  auto run = run_with(step("acting"));
  run["expected_end"] = {
      {"earliest", "2026-11-22T15:08:00Z"}, {"latest", "2026-11-22T15:20:00Z"}, {"overdue", true}};
  run["hours"] = {{"open", true}, {"until", "2026-11-22T16:00:00Z"}};
  EXPECT_EQ(expected_end_text(run),
            "overdue; earliest end 2026-11-22T15:08:00Z; window closes at 2026-11-22T16:00:00Z");
}

TEST(RunText, ProgressHasPercentAndARateWithItsUnit) {
  auto acting = step("acting");
  acting["progress"] = {{"phase", "executing chunks"},
                        {"done", 12},
                        {"total", 40},
                        {"unit", "chunks"},
                        {"rate", 523.2},
                        {"bytes_saved", 1'048'576}};
  EXPECT_EQ(progress_text(acting),
            "executing chunks, 12 of 40 chunks (30 %), 523 chunks/h, 1 MiB freed");
  acting["progress"] = {{"phase", "digest of n1: reading the log"},
                        {"done", 512 * 1'048'576LL},
                        {"total", 1024 * 1'048'576LL},
                        {"unit", "bytes"},
                        {"rate", 3'600.0 * 20 * 1'048'576}};
  EXPECT_EQ(progress_text(acting),
            "digest of n1: reading the log, 512 MiB of 1 GiB (50 %), 20 MiB/s");
  acting["progress"] = {
      {"phase", "watching"}, {"done", 66}, {"total", 660}, {"unit", "seconds"}, {"rate", 3'591.0}};
  EXPECT_EQ(progress_text(acting), "watching, 66 of 660 seconds (10 %)");
}

TEST(RunText, BreaksNoWordAndCutsNoTimeOnANarrowTerminal) {
  auto waiting = step("waiting");
  waiting["reason"] = "n2: the agent of n2 does not answer: cannot connect: Connection refused";
  const auto text = said(print_run, run_with(waiting), 80);
  EXPECT_THAT(text, AllOf(HasSubstr("2026-11-22T14:43:00Z"), HasSubstr("Connection"),
                          HasSubstr("refused"), Not(HasSubstr("…"))));
  EXPECT_THAT(text, HasSubstr("0123456789abcdef0123456789abcdef")) << "an id is never cut";
}

TEST(InterruptNoteDeathTest, SaysWhatContinuesAndEndsAsBefore) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const InterruptNote note("the run continues; cancel it with: verger run cancel 1\n");
        ::raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "the run continues; cancel it with");
}

}  // namespace
}  // namespace verger::cli
