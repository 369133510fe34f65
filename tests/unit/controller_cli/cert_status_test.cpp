// What people read of the certificates of a cluster.
#include "controller/cli/cert/cert_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include <nlohmann/json.hpp>

namespace verger::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

json certificate(const char* kind, const char* subject, const char* serial, int days) {
  return {{"kind", kind},
          {"subject", subject},
          {"serial", serial},
          {"fingerprint", std::string("of ") + serial},
          {"not_before", "2026-01-01T00:00:00Z"},
          {"not_after", "2027-01-01T00:00:00.0000000Z"},
          {"days_left", days}};
}

json answer() {
  const auto root = certificate("root", "CN=ca, O=us", "01", 300);
  return {{"cluster", "orders"},
          {"taken_at", "2026-11-23T03:00:00.0000000Z"},
          {"first_end",
           {{"node", "n1"},
            {"of", "node"},
            {"kind", "leaf"},
            {"not_after", "2026-12-01T00:00:00.0000000Z"}}},
          {"nodes",
           {{{"node", "n1"},
             {"served", {certificate("leaf", "CN=n1", "0A", -3), root}},
             {"files", {certificate("leaf", "CN=n1", "0B", 365), root}},
             {"agent", json::array()},
             {"file_differs", true},
             {"not_known", json::array()}},
            {{"node", "n2"},
             {"served", {certificate("leaf", "CN=n2", "0C", 8)}},
             {"files", json::array()},
             {"agent", {certificate("leaf", "CN=verger-agent", "0D", 60)}},
             {"users", {certificate("user", "CN=ouro", "0E", 12)}},
             {"file_differs", nullptr},
             {"not_known", {"its files, and the roots that it trusts: it has no agent"}}}}}};
}

TEST(CertStatus, ShowsEachPlaceOnceAndWhatWasNotReloaded) {
  std::ostringstream out;
  std::ostringstream err;
  ApiClient api({.controllers = {http::parse_endpoint("http://127.0.0.1:1").value()}}, err);
  print_certificates({.api = api, .out = out, .err = err, .json = false, .width = {}}, answer());
  EXPECT_THAT(
      out.str(),
      AllOf(HasSubstr("cluster orders at 2026-11-23T03:00:00Z; first to end: leaf of the "
                      "certificate of n1 at 2026-12-01T00:00:00Z\n"),
            ContainsRegex("n1 +served +leaf +n1 +0A +2027-01-01T00:00:00Z +EXPIRED"),
            ContainsRegex("n1 +served +root +CN=ca, O=us +01 .* 300"),
            ContainsRegex("n1 +on disk +leaf +n1 +0B .* 365"), Not(ContainsRegex("on disk +root")),
            ContainsRegex("n2 +agent +leaf +verger-agent"),
            ContainsRegex("n2 +of a user +user +ouro +0E .* 12"),
            HasSubstr("n1: its file holds another certificate than it serves"),
            HasSubstr("n2: not known: its files")));
}

}  // namespace
}  // namespace verger::cli
