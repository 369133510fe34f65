#include "controller/cluster/certificate_alerts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include <nlohmann/json.hpp>

#include "controller/journal/sqlite_journal.h"
#include "engine/base/clock.h"
#include "engine/base/memory_file_system.h"
#include "tests/support/controller/virtual_time.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kDay = 86'400 * kTicksPerSecond;

class CertificateAlertsTest : public ::testing::Test {
 protected:
  CertificateAlertsTest() {
    EXPECT_TRUE(disk_.make_directories("/j").has_value());
    journal_ = open_sqlite_journal(disk_, "/j/journal.db", time_).value();
    start();
  }
  void start() {
    alerts_.emplace(*journal_, journal_->begin_epoch("a").value(), null_log());
    EXPECT_TRUE(alerts_->load().has_value());
  }
  /// n1 and n2 show certificates that live for `lifetime` days.
  void look(double days_left, int lifetime = 365, std::string print = "aa") {
    planner::ClusterSnapshot snapshot;
    snapshot.cluster = "orders";
    snapshot.taken_at = Ticks(kUnixEpoch.value() + 20'000 * kDay);
    for (const auto* name : {"n1", "n2"}) {
      planner::NodeSnapshot node;
      node.name = name;
      const Ticks end(snapshot.taken_at.value() +
                      static_cast<std::int64_t>(days_left * double{kDay}));
      planner::ServedCertificate served{.serial = "0A", .of = "node", .not_after = end};
      served.chain.push_back({.subject = "CN=eventstoredb-node",
                              .serial = "0A",
                              .fingerprint = print,
                              .not_before = Ticks(end.value() - lifetime * kDay),
                              .not_after = end});
      node.certificates = {served};
      snapshot.nodes.push_back(node);
    }
    alerts_->look(snapshot);
  }
  /// On n1 are certificates of users, too.
  void look_at_users(std::map<std::string, double> days_left) {
    planner::ClusterSnapshot snapshot;
    snapshot.cluster = "orders";
    snapshot.taken_at = Ticks(kUnixEpoch.value() + 20'000 * kDay);
    planner::NodeSnapshot node;
    node.name = "n1";
    node.certificate_files.emplace();
    for (const auto& [name, days] : days_left) {
      const Ticks end(snapshot.taken_at.value() + static_cast<std::int64_t>(days * double{kDay}));
      node.certificate_files->users.push_back(
          {.path = "/users/" + name + ".crt",
           .certificate = {.kind = planner::CertificateSeen::Kind::kUser,
                           .subject = "CN=" + name,
                           .fingerprint = "print of " + name,
                           .not_before = Ticks(end.value() - 365 * kDay),
                           .not_after = end}});
    }
    snapshot.nodes.push_back(node);
    alerts_->look(snapshot);
  }
  std::vector<json> raised() {
    std::vector<json> out;
    const auto events = journal_->read("certificates/orders").value();
    for (const auto& event : events) {
      EXPECT_EQ(event.type, "certificate-ends");
      out.push_back(json::parse(event.data));
    }
    return out;
  }
  std::vector<int> days() {
    std::vector<int> out;
    for (const auto& each : raised()) {
      out.push_back(each.at("days"));
    }
    return out;
  }
  test::VirtualTime time_;
  MemoryFileSystem disk_;
  std::unique_ptr<Journal> journal_;
  std::optional<CertificateAlerts> alerts_;
};

TEST_F(CertificateAlertsTest, ComeOnceAtEachTimeAlsoAfterARestart) {
  look(40);
  EXPECT_THAT(days(), IsEmpty());
  for (const double left : {29.9, 29.0, 20.0, 13.9, 8.0, 6.5, 2.0, 0.9, 0.1, -0.1, -5.0}) {
    look(left);
    look(left);
    start();
    look(left);
  }
  EXPECT_THAT(days(), ElementsAre(30, 14, 7, 1, 0));
  const auto first = raised().front();
  EXPECT_EQ(first.at("nodes"), json::array({"n1", "n2"})) << "one alert for a certificate of two";
  EXPECT_THAT(first.at("reason").get<std::string>(),
              HasSubstr("the certificate CN=eventstoredb-node of n1, n2 ends at "));
  EXPECT_THAT(raised().back().at("reason").get<std::string>(), HasSubstr(" ended at "));
}

TEST_F(CertificateAlertsTest, OfOneSeenLateSayTheLastTimeAlone) {
  look(5);
  EXPECT_THAT(days(), ElementsAre(7));
}

TEST_F(CertificateAlertsTest, OfARenewedOneStartOver) {
  look(10);
  look(364, 365, "bb");
  look(10, 365, "bb");
  EXPECT_THAT(days(), ElementsAre(14, 14));
}

TEST_F(CertificateAlertsTest, OfShortLivesComeInTheirLastThird) {
  look(29, 90);
  EXPECT_THAT(days(), IsEmpty()) << "it is renewed at two thirds";
  look(13, 90);
  EXPECT_THAT(days(), ElementsAre(14));
  look(0.5, 1, "day");
  EXPECT_THAT(days(), SizeIs(1));
  look(-0.1, 1, "day");
  EXPECT_THAT(days(), ElementsAre(14, 0));
}

TEST_F(CertificateAlertsTest, EachUsersCertificateHasItsOwn) {
  look_at_users({{"ouro", 20}, {"ana", 6}, {"max", 200}});
  look_at_users({{"ouro", 20}, {"ana", 6}, {"max", 200}});
  ASSERT_THAT(raised(), SizeIs(2));
  EXPECT_EQ(raised()[0]["kind"], "user");
  EXPECT_THAT(raised()[0]["reason"].get<std::string>(),
              HasSubstr("the certificate of the user CN=ana on n1 ends at"));
  EXPECT_EQ(raised()[0]["days"], 7);
  EXPECT_EQ(raised()[1]["days"], 30);
}

}  // namespace
}  // namespace verger::controller
