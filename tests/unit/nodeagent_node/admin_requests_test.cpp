// Requests to the routes that run a node, of many forms, and what holds for all routes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/nodeagent_node/request_variations.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using namespace nlohmann::literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class AdminRequests : public RequestVariations {};

TEST_F(AdminRequests, ParametersOfAStartAreReadAsTheServerReadsThem) {
  for (const char* good :
       {"threads=%201", "threads=+1", "threshold=-5", "threshold=+7", "syncOnly=TRUE",
        "syncOnly=%20true%20", "SYNCONLY=False", "throttlePercent=100&threads=2",
        "throttlePercent=1", "startFromChunk=0", "unknown=1", "format=json"}) {
    EXPECT_EQ(start(good).status, 200) << good;
  }
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"threads=0&threads=2", "threads must be a 1 or above"},
      {"threads=2&threads=2", "threads must be a 1 or above"},
      {"threshold=1&THRESHOLD=1", "threshold must be an integer"},
      {"threshold=", "threshold must be an integer"},
      {"threshold=0x10", "threshold must be an integer"},
      {"threshold=1e3", "threshold must be an integer"},
      {"threads=1.0", "threads must be a 1 or above"},
      {"threads=%2B-1", "threads must be a 1 or above"},
      {"throttlePercent=99&threads=4", "throttlePercent must be 100 for a multi-threaded scavenge"},
      {"throttlePercent=", "throttlePercent must be between 1 and 100 inclusive"},
      {"syncOnly=", "syncOnly must be a boolean"},
      {"syncOnly=true&syncOnly=true", "syncOnly must be a boolean"},
      {"startFromChunk=-1&threads=0&threshold=x", "startFromChunk must be a positive integer"}};
  for (const auto& [query, text] : bad) {
    const auto answer = start(query);
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_EQ(answer.body, text) << query;
    EXPECT_EQ(answer.headers.get("Content-Type"), "text/plain") << query;
  }
}

TEST_F(AdminRequests, APriorityIsAnyInteger) {
  for (const char* good : {"-1", "+3", "%207", "2147483647", "-2147483648"}) {
    EXPECT_EQ(ask("POST", std::string("/admin/node/priority/") + good).status, 200) << good;
  }
  for (const char* bad : {"x", "1.5", "2147483648", "--1"}) {
    const auto answer = ask("POST", std::string("/admin/node/priority/") + bad);
    EXPECT_EQ(answer.status, 400) << bad;
    EXPECT_EQ(answer.body, "nodePriority must be an integer.") << bad;
  }
}

TEST_F(AdminRequests, TheFormatIsChosenAsTheServerChooses) {
  const auto type = [&](const std::string& target, const std::string& accept) {
    const auto answer = ask("GET", target, {{"Accept", accept}});
    return fmt::format("{} {}", answer.status, answer.headers.get("Content-Type").value_or("-"));
  };
  const std::string current = "/admin/scavenge/current";
  EXPECT_EQ(type(current, "*/*"), "200 text/plain; charset=utf-8");
  EXPECT_EQ(type(current, "application/*"), "200 application/json; charset=utf-8");
  EXPECT_EQ(type(current, "text/*"), "200 text/plain; charset=utf-8");
  EXPECT_EQ(type(current, "text/xml"), "200 text/xml; charset=utf-8");
  EXPECT_EQ(type(current, "application/xml"), "200 application/xml; charset=utf-8");
  EXPECT_EQ(type(current, "application/pdf, application/json;q=0.5"),
            "200 application/json; charset=utf-8");
  EXPECT_EQ(type(current, "text/xml;q=0.1, application/json;q=0.9"),
            "200 application/json; charset=utf-8");
  EXPECT_EQ(type(current, "application/pdf"), "406 -");
  EXPECT_EQ(type("/info", "text/*"), "200 text/xml; charset=utf-8");
  EXPECT_EQ(type(current + "?format=", "application/json"), "200 application/json; charset=utf-8");
  EXPECT_EQ(type(current + "?format=JSON", "text/plain"), "200 application/json; charset=utf-8");
  EXPECT_EQ(type(current + "?format=xml", "text/plain"), "200 text/xml; charset=utf-8");
  EXPECT_EQ(type(current + "?format=atom", "text/plain"), "406 -") << "known, not offered here";
  EXPECT_EQ(type(current + "?format=yaml", "text/plain"), "500 -") << "not known";
  EXPECT_EQ(type("/stats?format=text", "*/*"), "406 -");
  EXPECT_EQ(type("/metrics?format=json", "*/*"), "406 -");
  EXPECT_EQ(type("/metrics?format=yaml", "*/*"), "500 -");
  EXPECT_EQ(type("/metrics", "text/*"), "200 text/plain; charset=utf-8; version=0.0.4");
}

TEST_F(AdminRequests, AdminRoutesSpeakXml) {
  const Headers xml = {{"Accept", "text/xml"}};
  EXPECT_THAT(ask("GET", "/ping", xml).body,
              AllOf(HasSubstr("<TextMessage "),
                    HasSubstr("<Text>Ping request successfully handled</Text></TextMessage>")));
  EXPECT_THAT(ask("POST", "/admin/mergeindexes", xml).body,
              AllOf(HasSubstr("<MergeIndexesResultDto "), HasSubstr("<MergeIndexesId>")));
  const auto stats = ask("GET", "/stats", xml);
  EXPECT_EQ(stats.status, 200);
  EXPECT_EQ(stats.body, "") << "its writer gives up on what the statistics are";
  const auto started = ask("POST", "/admin/scavenge?throttlePercent=1", xml);
  EXPECT_THAT(started.body, HasSubstr("<ScavengeResultDto "));
  const auto at = started.body.find("<ScavengeId>") + 12;
  const auto id = started.body.substr(at, 36);
  const auto stopped = ask("DELETE", "/admin/scavenge/" + id, xml);
  if (stopped.status == 200) {
    EXPECT_THAT(stopped.body, HasSubstr("<string>" + id + "</string>"));
  }
  world_.run_for(1s);
  const auto history = ask("GET", "/streams/$scavenges?embed=body", xml);
  EXPECT_EQ(history.status, 200);
  EXPECT_THAT(history.body,
              AllOf(StartsWith("<?xml version=\"1.0\" encoding=\"utf-8\"?><feed xmlns=\""
                               "http://www.w3.org/2005/Atom\"><title>Event stream '$scavenges'"),
                    HasSubstr("<summary>$&gt;</summary>"), HasSubstr("</entry></feed>")));
}

TEST_F(AdminRequests, StatisticsComeInGroupsOrFlatWithDescriptionsWhereAsked) {
  const auto stats = [&](const std::string& target) {
    const auto answer = ask("GET", target, {{"Accept", "application/json"}});
    EXPECT_EQ(answer.status, 200) << target;
    return json::parse(answer.body);
  };
  EXPECT_TRUE(stats("/stats").at("/proc/mem"_json_pointer).is_number());
  EXPECT_TRUE(stats("/stats?group=false").at("proc-mem").is_number());
  for (const auto& described : {stats("/stats?metadata=true").at("proc").at("mem"),
                                stats("/stats/proc?metadata=true").at("mem"),
                                stats("/stats?metadata=true&group=false").at("proc-mem")}) {
    EXPECT_TRUE(described.at("value").is_number());
    EXPECT_EQ(described.at("category"), "Process");
    EXPECT_EQ(described.at("title"), "Process Virtual Memory");
    EXPECT_EQ(described.at("drawChart"), true);
    EXPECT_EQ(described.size(), 4U);
  }
  const auto writer = stats("/stats/es/writer?metadata=true").at("lastFlushSize");
  EXPECT_EQ(writer.at("category"), nullptr);
  EXPECT_EQ(writer.at("title"), "Writer Last Flush Size");
  EXPECT_TRUE(stats("/stats/es?metadata=true").at("checksum").is_number()) << "has no description";
  EXPECT_EQ(ask("GET", "/stats/proc/mem?metadata=true").status, 404) << "is no group";
}

TEST_F(AdminRequests, FormatsAreLookedAtBeforeRights) {
  EXPECT_EQ(ask("POST", "/users", {{"Accept", "application/json"}}, "{}", "").status, 415);
  EXPECT_EQ(ask("GET", "/streams/orders", {{"Accept", "application/pdf"}}, "", "").status, 406);
  EXPECT_EQ(ask("GET", "/streams/orders", {{"Accept", "application/json"}}, "", "").status, 401);
}

TEST_F(AdminRequests, AKnownPathWithAnotherMethodIs404WithTwoSegmentsAnd405Else) {
  const auto got = [&](const char* method, const char* target) {
    const auto answer = ask(method, target);
    return fmt::format("{} {}", answer.status, answer.headers.get("Allow").value_or("-"));
  };
  for (const char* two : {"/admin/reloadconfig", "/admin/mergeindexes", "/admin/shutdown"}) {
    EXPECT_EQ(got("GET", two), "404 -") << two;
  }
  EXPECT_EQ(got("POST", "/admin/login"), "404 -");
  EXPECT_EQ(got("POST", "/info/options"), "404 -");
  EXPECT_EQ(got("PUT", "/streams/orders"), "404 -");
  EXPECT_EQ(got("POST", "/users/alice"), "404 -");
  EXPECT_EQ(got("POST", "/info"), "405 GET, HEAD, OPTIONS");
  EXPECT_EQ(got("DELETE", "/stats"), "405 GET, HEAD, OPTIONS");
  EXPECT_EQ(got("DELETE", "/users"), "405 GET, HEAD, OPTIONS, POST");
  EXPECT_EQ(got("PUT", "/admin/scavenge/current"), "405 DELETE, GET, HEAD, OPTIONS");
  EXPECT_EQ(got("GET", "/admin/node/priority/1"), "405 OPTIONS, POST");
  EXPECT_EQ(got("OPTIONS", "/health/live"), "405 -");
  for (const char* readable : {"/info", "/admin/login", "/gossip"}) {
    const auto head = ask("HEAD", readable);
    EXPECT_EQ(head.status, 405) << readable;
    EXPECT_EQ(head.headers.get("Access-Control-Allow-Methods"), "GET, OPTIONS") << readable;
  }

  const auto options = [&](const char* target) {
    const auto answer = ask("OPTIONS", target, {}, "", "");
    EXPECT_EQ(answer.status, 200) << target;
    return std::string(answer.headers.get("Access-Control-Allow-Methods").value_or("-"));
  };
  EXPECT_EQ(options("/admin/node/resign"), "POST, OPTIONS");
  EXPECT_EQ(options("/admin/scavenge/current"), "DELETE, GET, OPTIONS");
  EXPECT_EQ(options("/gossip"), "GET, OPTIONS");
}

TEST_F(AdminRequests, ARouteLooksAtItsOwnHeadersOnly) {
  append("orders", "placed");
  const auto page = [&](const char* target, const char* name) {
    return ask("GET", target, {{"Accept", "application/json"}, {name, "x"}}).status;
  };
  EXPECT_EQ(page("/streams/orders", "ES-LongPoll"), 200);
  EXPECT_EQ(page("/streams/orders", "ES-HardDelete"), 200);
  EXPECT_EQ(page("/streams/orders/0/forward/5", "ES-LongPoll"), 400);
  EXPECT_EQ(page("/streams/orders/0", "ES-ResolveLinkTos"), 400);
  EXPECT_EQ(page("/streams/orders/0", "ES-LongPoll"), 200);
  EXPECT_EQ(page("/streams/$all/filtered?exclude-system-events=true", "ES-ResolveLinkTos"), 200);
  for (const char* name : {"ES-LongPoll", "ES-ResolveLinkTos", "ES-HardDelete"}) {
    EXPECT_EQ(ask("POST", "/streams/orders",
                  {{"Content-Type", "application/json"},
                   {"ES-EventType", "t"},
                   {"ES-EventId", world_.random().uuid().to_string()},
                   {name, "x"}},
                  "{}")
                  .status,
              201)
        << name;
  }
}

TEST_F(AdminRequests, AnAnswerIsCompressedWhereThatIsAllThatIsAskedFor) {
  const auto encoding = [&](const std::string& accept) {
    const auto answer = ask("GET", "/info", {{"Accept-Encoding", accept}});
    EXPECT_EQ(answer.status, 200);
    return fmt::format("{} {}", answer.headers.get("Content-Encoding").value_or("-"),
                       answer.body.starts_with("{") ? "plain" : "packed");
  };
  EXPECT_EQ(encoding("gzip"), "gzip packed");
  EXPECT_EQ(encoding("deflate"), "deflate packed");
  EXPECT_EQ(encoding("gzip, deflate"), "- plain");
  EXPECT_EQ(encoding("GZIP"), "- plain");
  EXPECT_EQ(encoding("br"), "- plain");
}

TEST_F(AdminRequests, CredentialsAreReadAsTheServerReadsThem) {
  const auto with = [&](const std::string& header) {
    return ask("GET", "/admin/login", {{"Authorization", header}}, "", "").status;
  };
  const auto good = http::basic_authorization("admin", "changeit");
  EXPECT_EQ(with(good), 200);
  EXPECT_EQ(with("basic" + good.substr(5)), 401) << "another scheme, so anonymous";
  EXPECT_EQ(with("Basic"), 500);
  EXPECT_EQ(with("Basic !"), 500);
  const auto text = ask("GET", "/admin/login", {{"Accept", "text/plain"}});
  EXPECT_EQ(text.status, 200);
  EXPECT_EQ(text.headers.get("Content-Type"), "application/json; charset=utf-8");
  EXPECT_EQ(ask("POST", "/users", {{"Content-Type", "application/json"}},
                R"({"LoginName":"bob","FULLNAME":"Bob","groups":[],"Password":"x1"})")
                .status,
            201)
      << "names of members in any case";
}

}  // namespace
}  // namespace verger::testing
