// The rules for metadata texts one by one, each with what applies then
// (docs/formats/scavenge.md, "Metadata").
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <ostream>

#include "engine/streams/metadata.h"

namespace verger::streams {
namespace {

/// "count 1, age 2, tb 3" without what does not apply; "acl" where there is one.
std::string what_applies(const StreamMetadata& metadata) {
  std::string out;
  const auto add = [&](std::string_view name, const std::optional<std::int64_t>& value) {
    if (value) {
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, *value);
    }
  };
  add("count", metadata.max_count);
  add("age", metadata.max_age_seconds);
  add("tb", metadata.truncate_before);
  if (metadata.acl) {
    out += out.empty() ? "acl" : ", acl";
  }
  return out;
}

struct MetadataRule {
  std::string_view json;
  std::string_view applies;
  std::uint8_t record_version = 1;
  friend void PrintTo(const MetadataRule& rule, std::ostream* out) { *out << rule.json; }
};

class MetadataRules : public testing::TestWithParam<MetadataRule> {};

TEST_P(MetadataRules, DecideWhatApplies) {
  const auto& rule = GetParam();
  EXPECT_EQ(what_applies(parse_metadata(as_bytes(rule.json), rule.record_version)), rule.applies);
}

constexpr MetadataRule kLimitRules[] = {
    // $maxCount and $maxAge: 0 and below are ignored, $tb: below 0.
    {R"({"$maxCount":1})", "count 1"},
    {R"({"$maxCount":0})", ""},
    {R"({"$maxCount":-1})", ""},
    {R"({"$maxCount":-9223372036854775808,"$tb":1})", "tb 1"},
    {R"({"$maxCount":9223372036854775807})", "count 9223372036854775807"},
    {R"({"$maxAge":1})", "age 1"},
    {R"({"$maxAge":0,"$tb":1})", "tb 1"},
    {R"({"$maxAge":-1,"$tb":1})", "tb 1"},
    {R"({"$tb":0})", "tb 0"},
    {R"({"$tb":-1,"$maxCount":1})", "count 1"},
    {R"({"$tb":9223372036854775807})", "tb 9223372036854775807"},
    // $maxAge and $cacheControl are durations of 64 bits of 100 ns.
    {R"({"$maxAge":922337203685,"$tb":1})", "age 922337203685, tb 1"},
    {R"({"$maxAge":922337203686,"$tb":1})", ""},
    {R"({"$maxAge":-922337203686,"$tb":1})", ""},
    {R"({"$cacheControl":922337203686,"$tb":1})", ""},
    {R"({"$cacheControl":0,"$tb":1})", "tb 1"},
    {R"({"$cacheControl":-7,"$tb":1})", "tb 1"},
    // $tmp has no effect.
    {R"({"$tmp":true,"$tb":1})", "tb 1"},
    {R"({"$tmp":false,"$tb":1})", "tb 1"},
    // Version 0 of the record has 32 bits for what means "deleted".
    {R"({"$tb":2147483647})", "tb 9223372036854775807", 0},
    {R"({"$tb":2147483646})", "tb 2147483646", 0},
    {R"({"$tb":2147483647})", "tb 2147483647", 1},
    {R"({"$maxCount":2147483647})", "count 2147483647", 0},
};
INSTANTIATE_TEST_SUITE_P(Limits, MetadataRules, testing::ValuesIn(kLimitRules));

constexpr MetadataRule kAclRules[] = {
    {R"({"$acl":{},"$tb":1})", "tb 1, acl"},
    {R"({"$acl":{"$r":"a","$w":["b"],"$d":[],"$mr":"c","$mw":["d","e"]}})", "acl"},
    {R"({"$acl":{"$r":"a",}})", "acl"},
    {R"({"$acl":{"$r":"a","$r":"b"}})", "acl"},
    {R"({"$acl":{"$R":"a"},"$tb":1})", ""},
    {R"({"$acl":{"other":"a"},"$tb":1})", ""},
    {R"({"$acl":{"$r":1},"$tb":1})", ""},
    {R"({"$acl":{"$r":true},"$tb":1})", ""},
    {R"({"$acl":{"$r":[["a"]]},"$tb":1})", ""},
    {R"({"$acl":{"$r":[null]},"$tb":1})", ""},
    {R"({"$acl":[],"$tb":1})", ""},
    {R"({"$acl":"a","$tb":1})", ""},
};
INSTANTIATE_TEST_SUITE_P(Acl, MetadataRules, testing::ValuesIn(kAclRules));

constexpr MetadataRule kTextRules[] = {
    // Not an object.
    {"", ""},
    {"   ", ""},
    {R"("$tb")", ""},
    {R"([{"$tb":1}])", ""},
    {R"(x{"$tb":1})", ""},
    // Members that mean nothing; names are compared as they are; the last one wins.
    {R"({"$TB":3,"tb":4,"":5,"$tb":1})", "tb 1"},
    {R"({"$tb":1,"$tb":2})", "tb 2"},
    {R"({"$tb":1,"$tb":-2})", ""},
    {R"({"$tb":1,"$tb":"2"})", ""},
    {R"({"a":{"$maxCount":1},"$tb":1})", "tb 1"},
    {R"({"$tb":1}}})", "tb 1"},
    {R"({"$tb":1}{"$tb":2})", "tb 1"},
    // What the reader of the server takes ...
    {R"({'$tb':1})", "tb 1"},
    {R"({$tb:1})", "tb 1"},
    {R"({"$tb":0x1F})", "tb 31"},
    {R"({"$tb":0XA})", "tb 10"},
    {R"({"$tb":0x7fffffffffffffff})", "tb 9223372036854775807"},
    {R"({"$tb":0xffffffffffffffff,"$maxCount":1})", "count 1"},  // -1
    {R"({"$tb":017})", "tb 15"},
    {R"({"$tb":00})", "tb 0"},
    {R"({"$tb":1,})", "tb 1"},
    {"\xEF\xBB\xBF{\"$tb\":1}", "tb 1"},
    {"\t\r\n {\t\"$tb\"\n:\r1 }", "tb 1"},
    {"\xC2\xA0{\"$tb\":1}", "tb 1"},  // a blank beyond ASCII
    // ... and what it does not.
    {"\xEF\xBB\xBF\xEF\xBB\xBF{\"$tb\":1}", ""},
    {R"({"$tb":0x})", ""},
    {R"({"$tb":0x1ffffffffffffffff})", ""},
    {R"({"$tb":018})", ""},
    {R"({"$tb":+1})", ""},
    {R"({"$tb":1-1})", ""},
    {R"({"$tb":--1})", ""},
    {R"({"$tb":-})", ""},
    {R"({"$tb":1)", ""},
    {R"({"$tb":)", ""},
    {R"({"$tb")", ""},
    {R"({"$tb":1;"a":2})", ""},
    {R"(//c
{"$tb":1})",
     ""},
    {R"(/**/{"$tb":1})", ""},
    {R"({"$tb":1/**/})", ""},
    {R"({//c
"$tb":1})",
     ""},
    {R"({"a":1,/**/"$tb":1})", ""},
};
INSTANTIATE_TEST_SUITE_P(Texts, MetadataRules, testing::ValuesIn(kTextRules));

/// A value of the wrong type empties everything, whichever member has it.
TEST(MetadataTypes, AWrongOneEmptiesEverything) {
  constexpr std::string_view kNotIntegers[] = {"null",     "\"1\"",
                                               "'1'",      "1.0",
                                               "1.",       "1e2",
                                               "-1.5",     "[]",
                                               "[1]",      "{}",
                                               "",         "undefined",
                                               "Infinity", "NaN",
                                               "true",     "9223372036854775808",
                                               "false",    "-9223372036854775809"};
  for (const std::string_view name : {"$maxCount", "$maxAge", "$tb", "$cacheControl"}) {
    for (const auto value : kNotIntegers) {
      const auto json = fmt::format(R"({{"$maxCount":1,"{}":{},"$tb":3}})", name, value);
      EXPECT_EQ(what_applies(parse_metadata(as_bytes(json), 1)), "") << json;
    }
  }
  for (const std::string_view value : {"null", "0", "1", "\"true\"", "[]", "{}", "True"}) {
    const auto json = fmt::format(R"({{"$tmp":{},"$tb":3}})", value);
    EXPECT_EQ(what_applies(parse_metadata(as_bytes(json), 1)), "") << json;
  }
}

}  // namespace
}  // namespace verger::streams
