#include "nodeagent/api/json_writer.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_text.h"

namespace verger::api {
namespace {

using nlohmann::json;

TEST(JsonWriter, WritesObjectsInObjects) {
  JsonWriter out;
  out.begin_object().member("text", "a").member("number", -7).member("truth", false);
  out.name("list").begin_list().value(1).begin_object().end_object().value("b").end_list();
  out.name("empty").begin_list().end_list();
  out.name("inner").begin_object().member("last", std::uint64_t{18'446'744'073'709'551'615U});
  out.end_object().end_object();
  EXPECT_EQ(out.take(), R"({"text":"a","number":-7,"truth":false,"list":[1,{},"b"],"empty":[],)"
                        R"("inner":{"last":18446744073709551615}})");
}

TEST(JsonWriter, WritesTextAsTheOtherWriterDoes) {
  for (const std::string text : {"", "plain ~", "quote \" and \\", "a\nb\tc", "\x01\x7f",
                                 "\xC3\xA4", "bad \xC3", "\xED\xA0\x80", "{", "a:"}) {
    JsonWriter out;
    EXPECT_EQ(out.begin_list().value(text).value(text).end_list().take(),
              to_text(json::array({text, text})));
  }
}

TEST(JsonWriter, EmbedsWhatTheCallerHoldsAsText) {
  JsonWriter out;
  out.begin_object();
  out.name("object").embedded(R"( {"a":[1, 2]} )").name("number").embedded("5");
  out.name("none").embedded("{oops").name("nothing").embedded("");
  out.members_of(R"({"b":1,"c":{}})").members_of("{ }").members_of("[1]").members_of("oops");
  out.member("last", true).end_object();
  EXPECT_EQ(out.take(), R"({"object":{"a":[1, 2]},"number":5,"none":"{oops","nothing":"",)"
                        R"("b":1,"c":{},"last":true})");
}

TEST(JsonWriter, WritesTheMembersOfAnObjectWhereNothingStandsBefore) {
  EXPECT_EQ(JsonWriter().begin_object().members_of(R"({"a":1})").end_object().take(), R"({"a":1})");
}

}  // namespace
}  // namespace verger::api
