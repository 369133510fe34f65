#include "engine/streams/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ostream>

namespace verger::streams {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

StreamMetadata parse(std::string_view json, std::uint8_t version = 1) {
  return parse_metadata(as_bytes(json), version);
}

bool is_empty(const StreamMetadata& m) {
  return !m.max_count && !m.max_age_seconds && !m.truncate_before && !m.acl;
}

TEST(Metadata, ReadsTheThreeLimits) {
  const auto metadata = parse(R"({"$maxCount":3,"$maxAge":86400,"$tb":7})");
  EXPECT_EQ(metadata.max_count, 3);
  EXPECT_EQ(metadata.max_age_seconds, 86400);
  EXPECT_EQ(metadata.truncate_before, 7);
}

TEST(Metadata, ReadsTheAccessList) {
  const auto acl = parse(R"({"$acl":{"$r":"$ops","$w":[],"$d":["a","b"],"$mr":"x"}})").acl;
  ASSERT_TRUE(acl);
  EXPECT_THAT(acl->read, Optional(ElementsAre("$ops")));
  EXPECT_THAT(acl->write, Optional(IsEmpty()));
  EXPECT_THAT(acl->remove, Optional(ElementsAre("a", "b")));
  EXPECT_THAT(acl->metadata_read, Optional(ElementsAre("x")));
  EXPECT_FALSE(acl->metadata_write);
}

TEST(Metadata, IgnoresLimitsThatAreNotPositive) {
  EXPECT_TRUE(is_empty(parse(R"({"$maxCount":0,"$maxAge":-5,"$tb":-1})")));
  EXPECT_EQ(parse(R"({"$tb":0})").truncate_before, 0);
}

TEST(Metadata, WidensTheOldSoftDeleteMark) {
  EXPECT_TRUE(parse(R"({"$tb":2147483647})", 0).soft_deleted());
  EXPECT_EQ(parse(R"({"$tb":2147483647})", 1).truncate_before, 2147483647);
  EXPECT_TRUE(parse(R"({"$tb":9223372036854775807})").soft_deleted());
}

/// The server accepts the text: $maxCount is `count`.
struct Accepted {
  std::string_view json;
  std::int64_t count;
  friend void PrintTo(const Accepted& a, std::ostream* out) { *out << a.json; }
};
class MetadataAccepts : public testing::TestWithParam<Accepted> {};
TEST_P(MetadataAccepts, WhatTheServerAccepts) {
  EXPECT_EQ(parse(GetParam().json).max_count, GetParam().count);
}
INSTANTIATE_TEST_SUITE_P(
    Texts, MetadataAccepts,
    testing::Values(
        Accepted{"{'$maxCount':1}", 1}, Accepted{"{$maxCount:1}", 1},
        Accepted{"{$maxCount : 1}", 1}, Accepted{R"({"$maxCount":0x1})", 1},
        Accepted{R"({"$maxCount":0XfF})", 255}, Accepted{R"({"$maxCount":010})", 8},
        Accepted{R"({"$maxCount":1,})", 1}, Accepted{"\xEF\xBB\xBF{\"$maxCount\":1}", 1},
        Accepted{" \r\n\t{\"$maxCount\":1}", 1}, Accepted{R"({"$maxCount":1} and more {)", 1},
        Accepted{R"({"$maxCount":2,"$maxCount":1})", 1},
        Accepted{R"({"other":{"a":[1,{"b":null}],"c":-1.5e3},"$maxCount":1})", 1},
        Accepted{R"({"other":[1,,2,],"$maxCount":1})", 1},
        Accepted{R"({"other":{"a":/*c*/1},"$maxCount":1})", 1},
        Accepted{R"({"other":undefined,"o2":NaN,"o3":-Infinity,"$maxCount":1})", 1},
        Accepted{R"({"other":99999999999999999999,"$maxCount":1})", 1},
        Accepted{R"({"$cacheControl":-1,"$tmp":true,"$maxCount":1})", 1},
        Accepted{"{\"\\u0024maxCount\":1}", 1}, Accepted{R"({"$MaxCount":5,"$maxCount":1})", 1},
        Accepted{R"({"$maxCount":-0,"$maxCount":1})", 1}, Accepted{R"({"a":,"$maxCount":1})", 1}));

/// The server refuses the text: nothing applies.
class MetadataRefuses : public testing::TestWithParam<std::string_view> {};
TEST_P(MetadataRefuses, WhatTheServerRefuses) { EXPECT_TRUE(is_empty(parse(GetParam()))); }
INSTANTIATE_TEST_SUITE_P(
    Texts, MetadataRefuses,
    testing::Values("", "[]", "null", "1", "{", R"({"$maxCount":1)", R"({"$tb":1,"$maxCount":"1"})",
                    R"({"$tb":1,"$maxCount":1.0})", R"({"$tb":1,"$maxCount":null})",
                    R"({"$tb":1,"$maxCount":9223372036854775808})", R"({"$tb":1,"$maxCount":+1})",
                    R"({"$tb":1,"$maxCount":08})", R"({"$tb":1,"$maxCount":-0x1})",
                    R"({"$tb":1,"$maxAge":922337203686})", R"({"$tb":1,"$tmp":1})",
                    R"({"$tb":1,"$tmp":null})", R"({"$tb":1,"$tmp":truer})",
                    R"({"$tb":1,"$cacheControl":null})", R"({"$tb":1,"$acl":null})",
                    R"({"$tb":1,"$acl":{"$x":"a"}})", R"({"$tb":1,"$acl":{"$r":1}})",
                    R"({"$tb":1,"$acl":{"$r":null}})", R"({"$tb":1,"$acl":{"$r":["a",1]}})",
                    R"({"$tb":1,"$acl":{"$r":{}}})", R"(/*c*/{"$tb":1})", R"({/*c*/"$tb":1})",
                    R"({"$tb":/*c*/1})", R"({"$tb":1/*c*/})", R"({"a":/*c*/1,"$tb":1})",
                    R"({,"$tb":1})", R"({"$tb":1,,"a":1})", R"({"$tb":1 "a":1})",
                    R"({"a":[1},"$tb":1})", R"({"a":],"$tb":1})", R"({"a":"\q","$tb":1})",
                    R"({"a":1.2.3,"$tb":1})", R"({"a":1e,"$tb":1})", R"({"a":"open,"$tb":1})",
                    R"({a-b:1,"$tb":1})"));

TEST(Metadata, RefusesContainersNestedTooDeep) {
  const auto nested = [](std::size_t levels) {
    return "{\"a\":" + std::string(levels, '[') + std::string(levels, ']') + ",\"$tb\":1}";
  };
  EXPECT_EQ(parse(nested(63)).truncate_before, 1);
  EXPECT_TRUE(is_empty(parse(nested(64))));
}

TEST(Metadata, ReadsEscapesOfRoles) {
  const auto acl = parse("{'$acl':{'$r':'\\u00e9\\ud83d\\ude00\\ud83dx\\n'}}").acl;
  ASSERT_TRUE(acl);
  EXPECT_THAT(acl->read, Optional(ElementsAre("é😀\xEF\xBF\xBDx\n")));
}

}  // namespace
}  // namespace verger::streams
