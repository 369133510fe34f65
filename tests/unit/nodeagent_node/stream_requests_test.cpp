// Requests to streams, of many forms: reading, writing, feeds and pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/nodeagent_node/request_variations.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class StreamRequests : public RequestVariations {};

TEST_F(StreamRequests, AFeedInAnyFormIsADescription) {
  append("orders", "placed", R"({"n":1})");
  for (const char* target :
       {"/streams/orders", "/streams/orders/head/backward/5", "/streams/orders/head/5"}) {
    const auto any = ask("GET", target, {{"Accept", "*/*"}});
    EXPECT_EQ(any.status, 406) << target;
    EXPECT_EQ(any.reason, "Description Document") << target;
    EXPECT_THAT(any.body, HasSubstr("Description document for 'orders'")) << target;
    const auto asked =
        ask("GET", target, {{"Accept", "application/vnd.eventstore.streamdesc+json"}});
    EXPECT_EQ(asked.status, 200) << target;
  }
  const auto xml = ask("GET", "/streams/orders/0/forward/5", {{"Accept", "application/atom+xml"}});
  EXPECT_EQ(xml.headers.get("Content-Type"), "application/atom+xml; charset=utf-8");
  EXPECT_THAT(xml.body, HasSubstr("<title>0@orders</title>"));
  EXPECT_EQ(ask("GET", "/streams/orders", {{"Accept", "text/plain"}}).status, 406);
}

TEST_F(StreamRequests, AnEventComesInManyForms) {
  append("orders", "placed", R"({"n":1,"list":["a<b",null],"of $":{"x":true}})");
  const auto form = [&](const std::string& accept) {
    return ask("GET", "/streams/orders/0", {{"Accept", accept}});
  };
  EXPECT_THAT(form("*/*").body,
              AllOf(HasSubstr("<atom:entry xmlns:atom=\"http://www.w3.org/2005/Atom\">"),
                    HasSubstr("<atom:content type=\"application/xml\">"),
                    HasSubstr("<eventType>placed</eventType>"), HasSubstr("</atom:entry>")));
  EXPECT_EQ(form("text/xml").body,
            "<data><n>1</n><list>a&lt;b</list><list /><of_x0020__x0024_>"
            "<x>true</x></of_x0020__x0024_></data>");
  EXPECT_THAT(form("application/vnd.eventstore.event+xml").body,
              StartsWith("<event><eventStreamId>orders</eventStreamId>"));
  EXPECT_EQ(form("application/octet-stream").body,
            R"({"n":1,"list":["a<b",null],"of $":{"x":true}})");
  const auto missing = ask("GET", "/streams/orders/9", {{"Accept", "text/xml"}});
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.body, "");
}

TEST_F(StreamRequests, HeadersInAWrongFormatAreNamed) {
  append("orders", "placed");
  const Headers feed = {{"Accept", "application/json"}};
  const auto with = [&](const char* name, const char* value) {
    auto headers = feed;
    headers.emplace_back(name, value);
    return headers;
  };
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, const char*>>{{"ES-RequireLeader", "yes"},
                                                        {"ES-LongPoll", "0"},
                                                        {"ES-LongPoll", "soon"},
                                                        {"ES-ResolveLinkTos", "1"}}) {
    const auto answer = ask("GET", "/streams/orders/0/forward/5", with(name, value));
    EXPECT_EQ(answer.status, 400) << name;
    EXPECT_EQ(answer.body, fmt::format("{} header in wrong format.", name));
  }
  const auto write = [&](Headers headers) {
    headers.emplace_back("Content-Type", "application/json");
    return ask("POST", "/streams/orders", headers, "{}");
  };
  EXPECT_EQ(
      write({{"ES-ExpectedVersion", "x"}}).body,
      "Must include an event type with the request either in body or as ES-EventType header.");
  EXPECT_EQ(write({{"ES-EventType", "t"}, {"ES-EventId", "no"}}).body,
            "ES-EventId header in wrong format.");
  EXPECT_EQ(write({{"ES-EventType", "t"}, {"ES-ExpectedVersion", "x"}}).status, 307)
      << "where to post again comes before what is expected";
  const auto id = world_.random().uuid().to_string();
  EXPECT_EQ(write({{"ES-EventType", "t"}, {"ES-EventId", id}, {"ES-ExpectedVersion", "-5"}}).body,
            "ES-ExpectedVersion header in wrong format.");
  EXPECT_EQ(ask("DELETE", "/streams/orders", {{"ES-HardDelete", "1"}}).body,
            "ES-HardDelete header in wrong format.");
  EXPECT_EQ(ask("POST", "/streams/orders", {{"Content-Type", "text/plain"}}, "x").status, 415);
  EXPECT_EQ(
      ask("POST", "/streams/orders", {{"Content-Type", "application/json; charset=latin1"}}, "{}")
          .status,
      415);
  EXPECT_EQ(ask("POST", "/streams/orders",
                {{"Content-Type", "application/json"}, {"Accept", "application/pdf"}}, "{}")
                .status,
            406);
}

TEST_F(StreamRequests, ALongPollWaitsForTheNextEvent) {
  append("orders", "placed");
  const auto poll = [&](const std::string& target, const char* seconds) {
    return ask("GET", target, {{"Accept", "application/json"}, {"ES-LongPoll", seconds}});
  };
  const auto before = world_.now();
  const auto empty = poll("/streams/orders/1/forward/5", "3");
  EXPECT_EQ(empty.status, 200);
  EXPECT_TRUE(json::parse(empty.body)["entries"].empty());
  EXPECT_GE(world_.now() - before, 3s);

  world_.schedule(1s, [this] {
    http::Request request{.method = "POST", .target = "/streams/orders"};
    request.headers.set("Authorization", http::basic_authorization("admin", "changeit"));
    request.headers.set("Content-Type", "application/json");
    request.headers.set("ES-EventType", "placed");
    request.headers.set("ES-EventId", world_.random().uuid().to_string());
    request.body = "{}";
    const auto send = [](http::Client& client, http::Request what) -> net::awaitable<void> {
      static_cast<void>(
          co_await client.send({false, "n1", NodeCluster::kHttpPort}, std::move(what), 5s));
    };
    world_.host("client").spawn(send(world_.host("client").client(), std::move(request)));
  });
  const auto start = world_.now();
  const auto found = poll("/streams/orders/1/forward/5", "30");
  EXPECT_EQ(json::parse(found.body)["entries"].size(), 1U);
  EXPECT_GE(world_.now() - start, 1s);
  EXPECT_LT(world_.now() - start, 5s);
  EXPECT_EQ(poll("/streams/none-such/0/forward/5", "1").status, 404);
  EXPECT_EQ(json::parse(poll("/streams/orders/0/forward/5", "30").body)["entries"].size(), 2U)
      << "what is there is not waited for";
}

TEST_F(StreamRequests, AllCanBeFiltered) {
  append("orders-1", "placed");
  append("orders-2", "paid");
  append("bills-1", "placed");
  const auto types = [&](const std::string& query) {
    const auto answer = ask(
        "GET",
        "/streams/$all/filtered/00000000000000000000000000000000/forward/50?embed=rich&" + query,
        {{"Accept", "application/json"}});
    EXPECT_EQ(answer.status, 200) << query << answer.body;
    std::vector<std::string> found;
    for (const auto& entry : json::parse(answer.body)["entries"]) {
      found.push_back(entry["streamId"].get<std::string>() + "/" +
                      entry["eventType"].get<std::string>());
    }
    return found;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(types("context=streamid&type=prefix&data=orders-,none"),
              ElementsAre("orders-2/paid", "orders-1/placed"));
  EXPECT_THAT(types("context=EventType&type=Regex&data=^pla"),
              ElementsAre("bills-1/placed", "orders-1/placed"));
  EXPECT_THAT(types("exclude-system-events=true"),
              AllOf(::testing::SizeIs(3), Not(::testing::Contains(StartsWith("$")))));
  const auto refusal = [&](const std::string& query) {
    const auto answer =
        ask("GET", "/streams/%24all/filtered?" + query, {{"Accept", "application/json"}});
    EXPECT_EQ(answer.status, 400) << query;
    return answer.body;
  };
  EXPECT_EQ(refusal("context=foo"),
            "Invalid context please provide one of the following: StreamId, EventType.");
  EXPECT_EQ(refusal("context=streamid&type=foo"),
            "Invalid type please provide one of the following: Regex, Prefix.");
  EXPECT_THAT(refusal("context=streamid&type=prefix"), HasSubstr("comma delimited list"));
  EXPECT_THAT(refusal("exclude-system-events=false"), HasSubstr("should have a value of true"));
  EXPECT_EQ(ask("GET", "/streams/$all/filtered?exclude-system-events=true",
                {{"Accept", "application/json"}}, "", "ops")
                .status,
            401)
      << "as $all itself";
}

TEST_F(StreamRequests, SettingsGiveRightsToStreamsWithoutTheirOwn) {
  create_alice();
  append("orders", "placed");
  append("$notes", "noted");
  const Headers feed = {{"Accept", "application/json"}};
  EXPECT_EQ(ask("GET", "/streams/orders", feed, "", "alice").status, 200);
  EXPECT_EQ(ask("GET", "/streams/$notes", feed, "", "alice").status, 401);
  append("$settings", "$settings",
         R"({"$userStreamAcl":{"$r":["$admins"]},"$systemStreamAcl":{"$r":["alice"]}})");
  EXPECT_EQ(ask("GET", "/streams/orders", feed, "", "alice").status, 401);
  EXPECT_EQ(ask("GET", "/streams/$notes", feed, "", "alice").status, 200);
  EXPECT_EQ(ask("POST", "/streams/orders/metadata",
                {{"Content-Type", "application/json"},
                 {"ES-EventId", world_.random().uuid().to_string()}},
                R"({"$acl":{"$r":"alice"}})")
                .status,
            201);
  EXPECT_EQ(ask("GET", "/streams/orders", feed, "", "alice").status, 200) << "its own go first";
}

TEST_F(StreamRequests, MetadataHasPagesToo) {
  for (const char* data : {R"({"$maxCount":5})", R"({"$maxCount":7})"}) {
    EXPECT_EQ(ask("POST", "/streams/orders/metadata",
                  {{"Content-Type", "application/json"},
                   {"ES-EventId", world_.random().uuid().to_string()}},
                  data)
                  .status,
              201);
  }
  const Headers feed = {{"Accept", "application/json"}};
  EXPECT_EQ(json::parse(ask("GET", "/streams/orders/metadata/1", feed).body)["$maxCount"], 7);
  EXPECT_EQ(ask("GET", "/streams/orders/metadata/0", feed).status, 404) << "only the newest counts";
  const auto page = ask("GET", "/streams/orders/metadata/head/backward/5", feed);
  EXPECT_EQ(json::parse(page.body)["entries"].size(), 1U);
  EXPECT_EQ(ask("GET", "/streams/$$orders/metadata", feed).status, 400);
}

TEST_F(StreamRequests, APostIsRepeatedWhereItWasSentTo) {
  const Headers json_event = {{"Content-Type", "application/json"}, {"ES-EventType", "placed"}};
  const auto sent_on = ask("POST", "/streams/orders", json_event, R"({"n":1})");
  ASSERT_EQ(sent_on.status, 307);
  std::string there(*sent_on.headers.get("Location"));
  there = there.substr(there.find("/streams/"));
  for (int i = 0; i < 2; ++i) {  // the second is the same event once more
    const auto written = ask("POST", there, json_event, R"({"n":1})");
    EXPECT_EQ(written.status, 201);
    EXPECT_THAT(std::string(*written.headers.get("Location")),
                ::testing::EndsWith("/streams/orders/0"));
    EXPECT_EQ(written.headers.get("Access-Control-Allow-Methods"), "GET, POST, OPTIONS");
  }
  EXPECT_EQ(ask("POST", "/streams/orders/incoming/no-guid", json_event, "{}").body,
            "Invalid request. Unable to parse guid");
  EXPECT_EQ(ask("POST", there, {{"Content-Type", "application/json"}}, "{}").body,
            "Empty eventType provided. (Parameter 'eventType')");
  EXPECT_EQ(
      ask("POST", there, {{"Content-Type", "application/vnd.eventstore.events+json"}}, "[]").status,
      415)
      << "one event goes there, no list";
  // Metadata have no such address.
  EXPECT_EQ(
      ask("POST", "/streams/orders/metadata", {{"Content-Type", "application/json"}}, "{}").body,
      "Empty eventId provided. (Parameter 'eventId')");
}

TEST_F(StreamRequests, EventsAreReadAsTheServersLibraryReadsThem) {
  const auto post = [&](const std::string& body) {
    return ask("POST", "/streams/orders",
               {{"Content-Type", "application/vnd.eventstore.events+json"}}, body);
  };
  const auto id = [&] { return world_.random().uuid().to_string(); };
  auto bare = id();
  std::erase(bare, '-');
  EXPECT_EQ(post(R"([{"EVENTID":")" + id() + R"(","EventType":"a","Data":{"n":1}}])").status, 201);
  EXPECT_EQ(post(R"([{"eventId":"{)" + id() + R"(}","eventType":"b","data":"text"}])").status, 201);
  EXPECT_EQ(
      post(R"([{"eventId":")" + bare + R"(","eventType":"c","data":"text","metadata":{}}])").status,
      201);
  EXPECT_EQ(post(R"([{"eventId":")" + id() + R"(","eventType":"d","data":5}])").status, 201);
  EXPECT_EQ(post(R"([{"eventId":"7","eventType":"e","data":{}}])").body,
            "Write request body invalid.");
  EXPECT_EQ(ask("POST", "/streams/orders",
                {{"Content-Type", "application/json"},
                 {"ES-EventType", "f"},
                 {"ES-EventId", "{" + id() + "}"}},
                "no JSON")
                .status,
            201)
      << "it is not checked whether it is";
  const auto page = json::parse(
      ask("GET", "/streams/orders/0/forward/9?embed=Body", {{"Accept", "application/json"}})
          .body)["entries"];
  ASSERT_EQ(page.size(), 5U);  // newest first
  const auto shown = [&](std::size_t i) {
    return fmt::format("{} {} {}", page[i]["eventType"].get<std::string>(),
                       page[i]["isJson"].get<bool>(), page[i]["data"].dump());
  };
  EXPECT_EQ(shown(4), R"(a true "{\n  \"n\": 1\n}")");
  EXPECT_EQ(shown(3), "b false null");
  EXPECT_EQ(shown(2), R"(c true "text")") << "JSON because of its metadata";
  EXPECT_EQ(shown(1), "d false null");
  EXPECT_EQ(shown(0), R"(f true "no JSON")");
  EXPECT_EQ(ask("GET", "/streams/orders/4", {{"Accept", "application/json"}}).body, "\"no JSON\"");
}

TEST_F(StreamRequests, EachWayToEmbedShowsMore) {
  const auto id = world_.random().uuid().to_string();
  EXPECT_EQ(
      ask("POST", "/streams/orders", {{"Content-Type", "application/vnd.eventstore.events+json"}},
          R"([{"eventId":")" + id +
              R"(","eventType":"placed","data":{"n":1},"metadata":{"by":"x"}}])")
          .status,
      201);
  append("orders", "raw", R"({"n":2})");
  const auto entries = [&](const std::string& embed) {
    return json::parse(ask("GET", "/streams/orders?embed=" + embed,
                           {{"Accept", "application/vnd.eventstore.atom+json"}})
                           .body)["entries"];
  };
  EXPECT_FALSE(entries("none")[0].contains("eventType"));
  EXPECT_EQ(entries("content")[0]["content"]["data"]["n"], 2);
  EXPECT_EQ(entries("RICH")[1]["isMetaData"], false) << "it was not looked at";
  EXPECT_FALSE(entries("rich")[1].contains("data"));
  EXPECT_EQ(entries("body")[1]["isMetaData"], true);
  EXPECT_EQ(entries("body")[0]["data"], R"({"n":2})") << "as it is stored";
  EXPECT_EQ(entries("pretty")[0]["data"], "{\n  \"n\": 2\n}");
  EXPECT_EQ(ask("POST", "/streams/orders",
                {{"Content-Type", "application/octet-stream"},
                 {"ES-EventType", "bytes"},
                 {"ES-EventId", world_.random().uuid().to_string()}},
                R"({"n":3})")
                .status,
            201);
  EXPECT_TRUE(entries("pretty")[0]["data"].is_null());
  EXPECT_EQ(entries("TryHarder")[0]["data"], "{\n  \"n\": 3\n}");
  EXPECT_EQ(entries("tryharder")[0]["isJson"], true);
  EXPECT_TRUE(entries("content")[0]["content"].is_null()) << "it is not JSON";

  const auto one = json::parse(ask("GET", "/streams/orders/0?embed=body",
                                   {{"Accept", "application/vnd.eventstore.atom+json"}})
                                   .body);
  EXPECT_EQ(one["eventType"], "placed");
  EXPECT_EQ(one["content"]["data"]["n"], 1);
  EXPECT_EQ(ask("GET", "/streams/orders/1", {{"Accept", "application/json"}}).body,
            "{\n  \"n\": 2\n}")
      << "JSON is written as the server writes it, however it came";
}

TEST_F(StreamRequests, MetadataThatThereIsNotIsEmptyOfAStreamThatThereIs) {
  append("orders", "placed");
  const auto metadata = [&](const std::string& stream, const char* accept = "application/json") {
    return ask("GET", "/streams/" + stream + "/metadata", {{"Accept", accept}});
  };
  EXPECT_EQ(metadata("orders").status, 200);
  EXPECT_EQ(metadata("orders").body, "{}");
  EXPECT_EQ(metadata("orders").headers.get("Content-Type"), "application/json; charset=utf-8");
  EXPECT_EQ(metadata("orders", "text/xml").body, "");
  EXPECT_EQ(metadata("none-such").status, 404);
  EXPECT_EQ(metadata("none-such").body, "{}");
  EXPECT_EQ(ask("DELETE", "/streams/orders", {{"ES-HardDelete", "true"}}).status, 204);
  const auto gone = metadata("orders");
  EXPECT_EQ(gone.status, 410);
  EXPECT_EQ(gone.reason, "Deleted");
  EXPECT_EQ(gone.body, "{}");
}

TEST_F(StreamRequests, MetadataOfAHardDeletedStreamIsTakenUntilTheWriterForgetsIt) {
  const auto post = [&](const std::string& stream) {
    return ask("POST", "/streams/" + stream + "/metadata",
               {{"Content-Type", "application/json"},
                {"ES-EventId", world_.random().uuid().to_string()}},
               R"({"$maxCount":5})")
        .status;
  };
  append("orders", "placed");
  append("plain", "placed");
  EXPECT_EQ(post("orders"), 201);
  for (const auto* stream : {"orders", "plain"}) {
    EXPECT_EQ(ask("DELETE", std::string("/streams/") + stream, {{"ES-HardDelete", "true"}}).status,
              204);
  }
  EXPECT_EQ(post("orders"), 201) << "the writer has its number from before";
  EXPECT_EQ(post("plain"), 410) << "it never had any";
  EXPECT_EQ(ask("GET", "/streams/orders/metadata", {{"Accept", "application/json"}}).status, 410);
  cluster_->crash(0);
  ASSERT_TRUE(cluster_->boot(0).has_value());
  ASSERT_TRUE(cluster_->run_until_settled());
  EXPECT_EQ(post("orders"), 410) << "a fresh process refuses";
}

TEST_F(StreamRequests, EmptyDataIsJsonWhereTheClientTriesHarder) {
  ASSERT_EQ(ask("POST", "/streams/orders",
                {{"Content-Type", "application/octet-stream"},
                 {"ES-EventType", "bytes"},
                 {"ES-EventId", world_.random().uuid().to_string()}},
                "")
                .status,
            201);
  const auto is_json = [&](const std::string& embed) {
    return json::parse(ask("GET", "/streams/orders?embed=" + embed,
                           {{"Accept", "application/vnd.eventstore.atom+json"}})
                           .body)["entries"][0]["isJson"];
  };
  EXPECT_EQ(is_json("tryharder"), true);
  EXPECT_EQ(is_json("body"), false);
}

TEST_F(StreamRequests, TheHeadOfAStreamThatIsCutBehindItsEndBeginsAtZero) {
  for (int i = 0; i < 3; ++i) {
    append("orders", "placed");
  }
  const auto previous = [&](const std::string& page) {
    const auto feed = json::parse(
        ask("GET", "/streams/orders" + page, {{"Accept", "application/vnd.eventstore.atom+json"}})
            .body);
    for (const auto& link : feed["links"]) {
      if (link["relation"] == "previous") {
        const auto uri = link["uri"].get<std::string>();
        return uri.substr(uri.find("/orders/") + 8);
      }
    }
    return std::string("none");
  };
  EXPECT_EQ(previous(""), "3/forward/20");
  ASSERT_EQ(ask("POST", "/streams/orders/metadata",
                {{"Content-Type", "application/json"},
                 {"ES-EventId", world_.random().uuid().to_string()}},
                R"({"$tb":9})")
                .status,
            201);
  EXPECT_EQ(previous(""), "0/forward/20");
  EXPECT_EQ(previous("/head/backward/7"), "0/forward/7");
  EXPECT_EQ(previous("/2/backward/7"), "3/forward/7");
}

TEST_F(StreamRequests, APageBackwardCountsNumbers) {
  for (int i = 0; i < 8; ++i) {
    append("orders", "placed");
  }
  EXPECT_EQ(ask("POST", "/streams/orders/metadata",
                {{"Content-Type", "application/json"},
                 {"ES-EventId", world_.random().uuid().to_string()}},
                R"({"$maxCount":6})")
                .status,
            201);  // 2 to 7 are left
  const auto page = [&](const std::string& from) {
    const auto answer = ask("GET", "/streams/orders/" + from, {{"Accept", "application/json"}});
    EXPECT_EQ(answer.status, 200) << from << answer.body;
    const auto feed = json::parse(answer.body);
    std::string out = fmt::format("{} events", feed["entries"].size());
    for (const auto& link : feed["links"]) {
      const auto uri = link["uri"].get<std::string>();
      if (link["relation"] == "next" || link["relation"] == "previous") {
        out += fmt::format(", {} {}", link["relation"].get<std::string>(),
                           uri.substr(uri.find("/orders/") + 8));
      }
    }
    return out;
  };
  EXPECT_EQ(page("head/backward/2"), "2 events, next 5/backward/2, previous 8/forward/2");
  EXPECT_EQ(page("4/backward/2"), "2 events, next 2/backward/2, previous 5/forward/2");
  EXPECT_EQ(page("3/backward/2"), "2 events, previous 4/forward/2") << "nothing older is shown";
  EXPECT_EQ(page("1/backward/2"), "0 events, previous 2/forward/2");
  EXPECT_EQ(page("100/backward/5"), "0 events, next 95/backward/5, previous 8/forward/5");
  EXPECT_EQ(page("9/backward/4"), "2 events, next 5/backward/4, previous 8/forward/4");
  EXPECT_EQ(page("6/forward/9"), "2 events, next 5/backward/9, previous 8/forward/9");
  const auto cache = [&](const std::string& from) {
    return std::string(ask("GET", "/streams/orders/" + from, {{"Accept", "application/json"}})
                           .headers.get("Cache-Control")
                           .value_or("-"));
  };
  EXPECT_THAT(cache("7/backward/2"), StartsWith("max-age=31536000"));
  EXPECT_THAT(cache("8/backward/2"), StartsWith("max-age=0"));
  EXPECT_THAT(cache("6/forward/2"), StartsWith("max-age=31536000"));
  EXPECT_THAT(cache("6/forward/3"), StartsWith("max-age=0"));
  const auto big = ask("GET", "/streams/orders/0/forward/4097", {{"Accept", "application/json"}});
  EXPECT_EQ(big.status, 500);
  EXPECT_EQ(big.reason, "Read size too big, should be less than 4096 items");
}

TEST_F(StreamRequests, WhatIsKnownIsNotSentAgain) {
  append("orders", "placed");
  const auto again = [&](const std::string& target, const std::string& etag) {
    return ask("GET", target, {{"Accept", "application/json"}, {"If-None-Match", etag}}).status;
  };
  const auto etag_of = [&](const std::string& target) {
    return std::string(
        ask("GET", target, {{"Accept", "application/json"}}).headers.get("ETag").value_or("-"));
  };
  const auto known = etag_of("/streams/orders");
  EXPECT_EQ(again("/streams/orders", known), 304);
  EXPECT_EQ(again("/streams/orders", known.substr(1, known.size() - 2)), 304) << "without quotes";
  EXPECT_EQ(again("/streams/orders/0/forward/20", known), 304);
  EXPECT_EQ(again("/streams/$all", etag_of("/streams/$all")), 304);
  append("orders", "placed");
  EXPECT_EQ(again("/streams/orders", known), 200);
}

TEST_F(StreamRequests, AStreamSaysHowLongItsHeadMayBeKept) {
  append("orders", "placed");
  const auto cache = [&](const std::string& target) {
    return std::string(ask("GET", target, {{"Accept", "application/json"}})
                           .headers.get("Cache-Control")
                           .value_or("-"));
  };
  EXPECT_EQ(cache("/streams/orders"), "max-age=0, no-cache, must-revalidate");
  EXPECT_EQ(ask("POST", "/streams/orders/metadata",
                {{"Content-Type", "application/json"},
                 {"ES-EventId", world_.random().uuid().to_string()}},
                R"({"$cacheControl":7})")
                .status,
            201);
  EXPECT_EQ(cache("/streams/orders"), "max-age=7, private");
  EXPECT_EQ(cache("/streams/orders/head"), "max-age=7, private");
  EXPECT_EQ(cache("/streams/orders/0/forward/5"), "max-age=7, private");
  EXPECT_EQ(cache("/streams/orders/0"), "max-age=31536000, private");
}

}  // namespace
}  // namespace verger::testing
