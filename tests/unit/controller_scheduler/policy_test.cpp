#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/scheduler/admission.h"
#include "tests/unit/controller_scheduler/times.h"

namespace verger::controller {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kGood = R"(name: weekly
clusters: [orders]
schedule:
  - {cron: "0 22 * * sat", zone: Europe/Berlin}
windows:
  allow:
    - {name: weekend night, days: [sat, sun], from: "22:00", to: "06:00", zone: Europe/Berlin}
  deny:
    - {from: "2024-12-20", to: "2025-01-02T06:00", zone: Europe/Berlin}
catch_up: run-if-in-window
expected_duration: 6h
parameters: {threads: 2, leader: {threads: 1, throttle_percent: 50}}
gates: {lag_limit: 4MiB}
deadlines: {scavenge: 3d}
resign: needs-approval
notifications:
  - {on: [failed, waiting], webhook: "http://127.0.0.1:9/hook"}
)";

SchedulePolicy good(const std::string& yaml) {
  auto parsed = parse_schedule_policy(yaml);
  EXPECT_TRUE(parsed.has_value()) << (parsed ? "" : to_text(parsed.error()));
  return parsed.value_or(SchedulePolicy());
}
std::string problems(const std::string& yaml) {
  const auto parsed = parse_schedule_policy(yaml);
  return parsed ? "" : to_text(parsed.error());
}

TEST(PolicyYaml, IsReadWhole) {
  const auto policy = good(kGood);
  EXPECT_EQ(policy.plan.name, "weekly");
  EXPECT_THAT(policy.clusters, ElementsAre("orders"));
  ASSERT_THAT(policy.windows.allow, SizeIs(1));
  EXPECT_EQ(policy.windows.allow[0].describe(),
            "\"weekend night\" (Sat, Sun 22:00-06:00 Europe/Berlin)");
  EXPECT_EQ(policy.windows.deny[0].describe(),
            "2024-12-20 00:00 to 2025-01-02 06:00 Europe/Berlin");
  EXPECT_EQ(scavenge_of(policy.plan).threads, 2);
  EXPECT_EQ(scavenge_of(policy.plan).leader_threads, 1);
  EXPECT_EQ(scavenge_of(policy.plan).leader_throttle_percent, 50);
  EXPECT_EQ(policy.plan.gates.lag_limit_bytes, 4 << 20);
  EXPECT_EQ(scavenge_of(policy.plan).scavenge_deadline_ms, 3 * 86'400'000LL);
  EXPECT_EQ(policy.expected_duration, std::chrono::hours(6));
  EXPECT_EQ(policy.resign, ResignRule::kNeedsApproval);
  EXPECT_TRUE(admit(policy, at("2024-06-01 00:00")).has_value());
}

TEST(PolicyYaml, ReadsTheGatesOfClocksCertificatesAndQueries) {
  const auto policy = parse_schedule_policy(R"yaml(name: careful
clusters: [prod]
strategy: offline
gates:
  clock_skew: 5s
  certificate_margin: 7d
  queries:
    - {name: latency, url: "http://127.0.0.1:9090", query: "max(latency)", at_most: 0.5}
    - {name: replicas, url: "https://prometheus:9090", query: "count(up)", at_least: 3, at_most: 5}
)yaml");
  ASSERT_TRUE(policy.has_value()) << to_text(policy.error());
  EXPECT_EQ(scavenge_of(policy->plan).strategy, planner::Strategy::kOffline);
  EXPECT_EQ(policy->plan.gates.clock_skew_limit_ms, 5'000);
  EXPECT_EQ(policy->plan.gates.certificate_margin_ms, 7 * 86'400'000LL);
  ASSERT_EQ(policy->plan.gates.queries.size(), 2U);
  EXPECT_EQ(policy->plan.gates.queries[0],
            (planner::QueryBlocker{"latency", "http://127.0.0.1:9090", "max(latency)", "", "0.5"}));
  EXPECT_EQ(policy->plan.gates.queries[1].at_least, "3");
}

TEST(PolicyYaml, AnUnknownOperationIsAnsweredWithThoseThatAreKnown) {
  EXPECT_THAT(
      problems("name: a\nclusters: [b]\noperation: repaint\n"),
      HasSubstr("line 3: operation \"repaint\" is not known; known operations are: scavenge"));
}

TEST(PolicyYaml, ASectionOfAnotherOperationSaysWhichLineIsMissing) {
  EXPECT_THAT(problems("name: a\nclusters: [b]\nrestore:\n  repository: main\n"),
              AllOf(HasSubstr("line 3: restore goes with operation restore"),
                    HasSubstr("this policy is of operation scavenge; say \"operation: restore\""),
                    Not(HasSubstr("not a key here"))));
  EXPECT_THAT(problems("name: a\nclusters: [b]\noperation: restore\nstrategy: rolling\n"),
              HasSubstr("line 4: strategy goes with operation scavenge"));
  EXPECT_THAT(problems("name: a\nclusters: [b]\noperation: repaint\nrestore: {}\n"),
              Not(HasSubstr("goes with")));
}

TEST(PolicyYaml, EveryFieldOfThePlanIsShownAndComparedWithTheFormerPolicy) {
  const std::string head = "name: a\nclusters: [b]\n";
  const auto plain = parse_schedule_policy(head);
  const auto other = parse_schedule_policy(head + "deadlines: {service: 50m}\n");
  ASSERT_TRUE(plain.has_value() && other.has_value());
  EXPECT_EQ(to_json(*other)["plan"]["scavenge"]["serviceDeadlineMs"], 3'000'000);
  EXPECT_NE(to_json(*plain), to_json(*other));
}

TEST(PolicyYaml, SaysWhatIsWrongWithAQuery) {
  const auto policy = parse_schedule_policy(R"yaml(name: careful
clusters: [prod]
gates:
  queries:
    - {name: a, url: "127.0.0.1:9090", query: "up", at_most: many}
    - {name: b, url: "http://127.0.0.1:9090", query: "up"}
)yaml");
  ASSERT_FALSE(policy.has_value());
  const auto text = to_text(policy.error());
  EXPECT_NE(text.find("line 5: gates.queries.at_most is \"many\"; it takes a number"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("line 6: a query needs name, url, query, and at_least, at_most or both"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("it takes the address of a Prometheus server"), std::string::npos) << text;
}

TEST(PolicyYaml, ReadsQueriesThatVergerdAnswers) {
  const std::string query =
      "gates:\n  queries:\n    - {name: b, url: vergerd, query: verified_backup_age_hours, "
      "at_most: 24}\n";
  const auto policy = parse_schedule_policy("name: a\nclusters: [b]\n" + query);
  ASSERT_TRUE(policy.has_value()) << to_text(policy.error());
  EXPECT_EQ(policy->plan.gates.queries.at(0).url, "vergerd");
  EXPECT_THAT(problems("name: a\nclusters: [b]\ngates:\n  queries:\n    - {name: b, url: vergerd, "
                       "query: up, at_most: 1}\n"),
              HasSubstr("line 5: gates.queries.query is \"up\"; of vergerd it takes "
                        "verified_backup_age_hours"));
  EXPECT_THAT(
      problems("name: a\nclusters: [b]\noperation: backup\nbackup: {repository: main}\n" + query),
      HasSubstr("line 7: a policy of operation backup does not wait for "
                "verified_backup_age_hours: its runs are what ends the wait"));
}

TEST(PolicyYaml, NamesTheNearestKeyAndItsLine) {
  EXPECT_EQ(problems("name: a\nclusters: [b]\nshedule:\n  - {cron: '0 0 * * *', zone: UTC}\n"),
            "line 3: shedule is not a key here; did you mean schedule?");
  EXPECT_EQ(problems("name: a\nclusters: [b]\nparameters:\n  threds: 2\n"),
            "line 4: parameters.threds is not a key here; did you mean threads?");
  EXPECT_THAT(problems("name: a\nclusters: [b]\nxyzzy: 2\n"), HasSubstr("known are: name,"));
}

TEST(PolicyYaml, TellsAllProblemsAtOnceInOrder) {
  const auto text = problems(R"(name: Bad Name
schedule:
  - {cron: "0 25 * * *", zone: Europe/Berlim}
windows:
  deny:
    - {days: [mon-fry], from: "8", to: "18:00", zone: UTC}
catch_up: maybe
parameters: {threads: 9}
)");
  EXPECT_THAT(text, HasSubstr("line 1: name takes small letters"));
  EXPECT_THAT(text, HasSubstr("line 1: neither clusters nor labels"));
  EXPECT_THAT(text, HasSubstr("line 3: cron field hour is \"25\""));
  EXPECT_THAT(text, HasSubstr("did you mean Europe/Berlin?"));
  EXPECT_THAT(text, HasSubstr("line 6: windows.deny.days has \"mon-fry\""));
  EXPECT_THAT(text, HasSubstr("line 6: windows.deny.from is \"8\""));
  EXPECT_THAT(text,
              HasSubstr("line 7: catch_up is \"maybe\"; it takes run, skip, run-if-in-window"));
  EXPECT_THAT(text, HasSubstr("line 8: parameters.threads is \"9\"; it takes 1 to 4"));
}

TEST(PolicyYaml, ReportsBrokenYamlWithItsLine) {
  EXPECT_THAT(problems("name: a\nclusters: [b\n"), HasSubstr("line "));
  EXPECT_EQ(problems(""), "the file is empty");
  EXPECT_THAT(problems("- a\n- b\n"), HasSubstr("must be a mapping"));
  EXPECT_THAT(problems("name: a\nname: b\nclusters: [c]\n"),
              HasSubstr("line 2: name is there twice"));
}

TEST(PolicyYaml, SelectsByNameOrByLabel) {
  ClusterConfig cluster;
  cluster.name = "orders";
  cluster.labels = {{"tier", "gold"}, {"site", "fra"}};
  EXPECT_TRUE(good("name: a\nclusters: [orders]\n").selects(cluster));
  EXPECT_FALSE(good("name: a\nclusters: [billing]\n").selects(cluster));
  EXPECT_TRUE(good("name: a\nlabels: {tier: gold}\n").selects(cluster));
  EXPECT_FALSE(good("name: a\nlabels: {tier: gold, site: ams}\n").selects(cluster));
}

TEST(PolicyAdmission, RefusesWindowsThatCanNeverHoldTheExpectedDuration) {
  auto policy = good(kGood);
  policy.expected_duration = std::chrono::hours(10);
  const auto refused = admit(policy, at("2024-06-01 00:00"));
  ASSERT_FALSE(refused.has_value());
  // 22:00 to 06:00 has eight hours, and nine in the night that repeats one.
  EXPECT_THAT(refused.error()[0].message,
              HasSubstr("openings in the next 366 days has 9 h (Sat 2024-10-26 22:00 CEST to Sun "
                        "2024-10-27 06:00 CET), which is 1 h "
                        "short"));
  policy.spans_openings = true;
  const auto admitted = admit(policy, at("2024-06-01 00:00"));
  ASSERT_TRUE(admitted.has_value());
  EXPECT_THAT(admitted->at(0), HasSubstr("at least 2 openings"));
  policy.plan.pauses.on_close = planner::PauseRule::kLeave;
  EXPECT_FALSE(admit(policy, at("2024-06-01 00:00")).has_value());
}

TEST(PolicyAdmission, ReckonsWithEveryWindowThatBindsACluster) {
  const auto policy = good(kGood);
  const auto backup = good(R"(name: backup
clusters: [orders]
windows: {deny: [{days: [sun], from: "01:00", to: "03:00", zone: Europe/Berlin}]}
)");
  Binding binding{.cluster = "orders", .windows = policy.windows};
  ASSERT_TRUE(admit(policy, at("2024-06-01 00:00"), {binding}).has_value());
  binding.windows.deny.push_back(backup.windows.deny.front());
  // Sunday to Monday still has eight hours.
  EXPECT_TRUE(admit(policy, at("2024-06-01 00:00"), {binding}).has_value());
  binding.windows.deny.front().weekdays.set();
  binding.windows.deny.back().weekdays.set();
  const auto refused = admit(policy, at("2024-06-01 00:00"), {binding});
  ASSERT_FALSE(refused.has_value()) << "six hours are expected, two hours of each night are denied";
  EXPECT_THAT(refused.error()[0].message,
              AllOf(HasSubstr("cluster orders: "), HasSubstr("6 h are expected")));
}

TEST(PolicyAdmission, ReckonsWithWhatEarlierRunsTook) {
  auto policy = good(kGood);
  policy.expected_duration.reset();
  auto run = std::make_shared<RunSummary>();
  run->operation = "scavenge";
  run->status = RunStatus::kDone;
  for (const auto* node : {"n1", "n2", "n3"}) {
    run->durations.push_back({node, "scavenge", 4 * 3'600'000, 100});
  }
  const std::vector<std::shared_ptr<const RunSummary>> runs{run};
  Binding binding{.cluster = "orders", .windows = policy.windows};
  binding.past_duration = past_duration(runs, policy);
  ASSERT_EQ(binding.past_duration, std::chrono::hours(12));
  const auto now = at("2024-06-01 00:00");
  const auto admitted = admit(policy, now, {binding});
  ASSERT_TRUE(admitted.has_value()) << "a run that is interrupted takes several openings";
  EXPECT_THAT(admitted->at(0), AllOf(HasSubstr("12 h"), HasSubstr("at least 2 openings")));
  policy.plan.pauses.on_close = planner::PauseRule::kLeave;
  EXPECT_FALSE(admit(policy, now, {binding}).has_value());
  policy.plan.pauses.on_close = planner::PauseRule::kStop;
  policy.expected_duration = std::chrono::hours(6);
  const auto refused = admit(policy, now, {binding});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error()[0].message, HasSubstr("12 h (as in earlier runs) are expected"));
}

TEST(PolicyAdmission, RefusesWhatIsNeverOpenOrNeverDueWhenOpen) {
  auto closed = good(R"(name: a
clusters: [b]
windows:
  allow: [{days: [sat], from: "22:00", to: "24:00", zone: UTC}]
  deny: [{days: [sat], from: "20:00", to: "02:00", zone: UTC}]
)");
  EXPECT_THAT(admit(closed, at("2024-06-01 00:00")).error()[0].message,
              HasSubstr("closed for all"));
  auto never = good(R"(name: a
clusters: [b]
schedule: [{cron: "0 12 * * *", zone: UTC}]
windows:
  allow: [{from: "22:00", to: "04:00", zone: UTC}]
)");
  EXPECT_THAT(admit(never, at("2024-06-01 00:00")).error()[0].message,
              HasSubstr("never due inside an opening"));
  never.catch_up = CatchUp::kRun;
  EXPECT_TRUE(admit(never, at("2024-06-01 00:00")).has_value());
  auto tiny = good(R"(name: a
clusters: [b]
windows:
  allow: [{from: "22:00", to: "22:01", zone: UTC}]
)");
  EXPECT_THAT(admit(tiny, at("2024-06-01 00:00")).error()[0].message,
              HasSubstr("no opening can hold a move of the leader"));
}

TEST(PolicyAdmission, RefusesAddressesThatWouldNeverBeCalled) {
  const auto said = [](const std::string& what) {
    const auto admitted = admit(good("name: a\nclusters: [b]\n" + what), at("2024-06-01 00:00"));
    return admitted ? std::string() : to_text(admitted.error());
  };
  const auto webhook = [&](const std::string& url) {
    return said("notifications: [{on: failed, webhook: '" + url + "'}]\n");
  };
  EXPECT_EQ(webhook("https://hooks.example.com/services/1?x=2"), "");
  EXPECT_EQ(webhook("http://127.0.0.1:9/hook"), "");
  EXPECT_THAT(webhook("http://hooks.example.com/"), HasSubstr("plain HTTP is for loopback"));
  EXPECT_THAT(webhook("hooks.example.com"), HasSubstr("notifications.webhook"));
  EXPECT_THAT(webhook("https://ann:secret@hooks.example.com/"), HasSubstr("credentials"));
  const auto query = [&](const std::string& url) {
    return said("gates: {queries: [{name: q, url: '" + url + "', query: up, at_least: 1}]}\n");
  };
  EXPECT_EQ(query("https://prometheus.example.com"), "");
  EXPECT_THAT(query("http://prometheus.example.com:9090"), HasSubstr("would never open"));
}

TEST(Windows, SayWhyItIsClosedAndUntilWhen) {
  const auto policy = good(kGood);
  const auto closed = opening_at(policy.windows, at("2024-06-05 12:00"));
  EXPECT_FALSE(closed.open);
  EXPECT_EQ(text_of(closed.since), "2024-06-03 04:00");
  EXPECT_EQ(text_of(*closed.until), "2024-06-08 20:00");
  EXPECT_EQ(closed.reason, "no allow window is open");
  const auto open = opening_at(policy.windows, at("2024-06-08 21:00"));
  EXPECT_TRUE(open.open);
  EXPECT_EQ(text_of(open.since), "2024-06-08 20:00");
  EXPECT_EQ(text_of(*open.until), "2024-06-09 04:00");
  const auto denied = opening_at(policy.windows, at("2024-12-21 22:30"));
  EXPECT_FALSE(denied.open);
  EXPECT_THAT(denied.reason, HasSubstr("deny window 2024-12-20 00:00"));
}

TEST(Windows, WithoutAllowWindowsAllIsOpenButWhatIsDenied) {
  WindowRules rules;
  EXPECT_TRUE(opening_at(rules, at("2024-06-05 12:00")).open);
  EXPECT_FALSE(opening_at(rules, at("2024-06-05 12:00")).until.has_value());
  Window office;
  office.zone = zone("Europe/Berlin");
  office.weekdays = 0b0111110;
  office.from = std::chrono::hours(8);
  office.to = std::chrono::hours(18);
  rules.deny.push_back(office);
  EXPECT_FALSE(opening_at(rules, at("2024-06-05 12:00")).open);
  EXPECT_EQ(text_of(*opening_at(rules, at("2024-06-07 16:00")).until), "2024-06-10 06:00");
}

}  // namespace
}  // namespace verger::controller
