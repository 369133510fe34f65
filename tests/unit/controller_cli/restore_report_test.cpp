// What people read of a restore that has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

#include "controller/cli/operations/reports.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string printed_restore(const char* outcome, json node) {
  std::ostringstream out;
  std::ostringstream err;
  ApiClient api({.controllers = {http::parse_endpoint("http://127.0.0.1:1").value()}}, err);
  print_report({.api = api, .out = out, .err = err, .json = false, .width = {}},
               {{"operation", "restore"},
                {"report",
                 {{"outcome", outcome},
                  {"generation", "g1"},
                  {"leader", "n2"},
                  {"nodes", json::array({std::move(node)})},
                  {"timeline", nullptr},
                  {"notes", {"make a full backup next"}}}}});
  return out.str();
}

json restored_node() {
  return {{"name", "n1"},
          {"state", "restored"},
          {"bytes", 4'194'304},
          {"lost_bytes", 2'048},
          {"old_files", "/db/old-before-g1"},
          {"discarded_bytes", nullptr},
          {"reason", ""},
          {"commands", json::array()}};
}

TEST(RestoreReport, ShowsWhatWasRestoredAndLost) {
  EXPECT_THAT(printed_restore("restored", restored_node()),
              AllOf(HasSubstr("restored from backup g1; n2 leads"), HasSubstr("4 MiB"),
                    HasSubstr("2 KiB"), HasSubstr("/db/old-before-g1"),
                    HasSubstr("note: make a full backup next"), Not(HasSubstr("by hand"))));
}

TEST(RestoreReport, DoesNotShowFilesThatWereRemoved) {
  auto node = restored_node();
  node["discarded_bytes"] = 1'048'576;
  EXPECT_THAT(printed_restore("restored", node),
              AllOf(HasSubstr("1 MiB"), Not(HasSubstr("old-before"))));
}

TEST(RestoreReport, SaysLoudlyWhatIsNotUndoneAndHow) {
  auto node = restored_node();
  node["state"] = "not-undone";
  node["reason"] = "restore-n1: not in time";
  node["commands"] = json{"on n1: verger-db restore /db --revert g1"};
  EXPECT_THAT(printed_restore("not-undone", node),
              AllOf(HasSubstr("NOT UNDONE"), HasSubstr("n1: restore-n1: not in time"),
                    HasSubstr("by hand: on n1: verger-db restore /db --revert g1")));
  EXPECT_THAT(printed_restore("started", node), HasSubstr("NOT SEEN WHOLE"));
}

}  // namespace
}  // namespace verger::cli
