// What people read of a change of certificates that has ended.
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

json node_of_report(const char* name, bool switched, const char* reason) {
  return {{"name", name},
          {"serial_before", "0A"},
          {"serial_after", switched ? "0B" : "0A"},
          {"not_after_before", "2026-12-01T00:00:00Z"},
          {"not_after", switched ? "2027-12-01T00:00:00Z" : "2026-12-01T00:00:00Z"},
          {"switched", switched},
          {"undone", !switched && *reason == '\0'},
          {"reason", reason},
          {"commands", *reason == '\0' ? json::array() : json{"on n2: mv a b && curl reload"}}};
}

std::string printed(const char* outcome, json nodes, json seconds) {
  std::ostringstream out;
  std::ostringstream err;
  ApiClient api({.controllers = {http::parse_endpoint("http://127.0.0.1:1").value()}}, err);
  print_report({.api = api, .out = out, .err = err, .json = false, .width = {}},
               {{"operation", "certificates"},
                {"report",
                 {{"outcome", outcome},
                  {"nodes", std::move(nodes)},
                  {"window_seconds", 600.0},
                  {"seconds_to_proof", seconds},
                  {"watched_seconds", seconds.is_null() ? json() : json(660)},
                  {"proofs", {{{"phase", "leaf"}, {"handshakes", 15}}}},
                  {"timeline", nullptr},
                  {"notes", {"n1: a warning"}}}}});
  return out.str();
}

TEST(CertificatesReport, ShowsSerialsProofAndTime) {
  EXPECT_THAT(
      printed("changed", json::array({node_of_report("n1", true, "")}), 4.25),
      AllOf(HasSubstr("all nodes show their new certificates"), HasSubstr("0A"), HasSubstr("0B"),
            HasSubstr("4.2 s from the first switch"), HasSubstr("the window is 600 s"),
            HasSubstr("watched for 660 s after that: at its end all nodes were there"),
            HasSubstr("proven (leaf): 15 handshakes"), HasSubstr("note: n1: a warning")));
}

TEST(CertificatesReport, ShowsAShortTimeInMilliseconds) {
  EXPECT_THAT(printed("changed", json::array({node_of_report("n1", true, "")}), 0.0421),
              HasSubstr("\n42 ms from the first switch"));
}

TEST(CertificatesReport, SaysLoudlyWhatIsNotRestoredAndHow) {
  const auto text =
      printed("not-restored",
              {node_of_report("n1", false, ""), node_of_report("n2", false, "it does not answer")},
              nullptr);
  EXPECT_THAT(text, AllOf(HasSubstr("NOT RESTORED"), HasSubstr("restored"),
                          HasSubstr("by hand: on n2: mv a b && curl reload"),
                          Not(HasSubstr("from the first switch"))));
}

}  // namespace
}  // namespace verger::cli
