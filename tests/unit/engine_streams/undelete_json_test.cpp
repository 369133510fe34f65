#include "engine/streams/detail/undelete_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/streams/stream_names.h"

namespace verger::streams {
namespace {

std::string undelete(std::string_view json, std::int64_t first) {
  return std::string(as_text(detail::undelete_json(as_bytes(json), EventNumber(first))));
}

TEST(UndeleteJson, SetsTheTruncation) {
  EXPECT_EQ(undelete(R"({"$tb":9223372036854775807})", 4), R"({"$tb":4})");
}

TEST(UndeleteJson, KeepsOtherKeysAndTheirOrder) {
  EXPECT_EQ(undelete(R"({ "z": [1, 2.5], "$tb": 9223372036854775807, "a": {"ö": null} })", 7),
            R"({"z":[1,2.5],"$tb":7,"a":{"ö":null}})");
  EXPECT_EQ(undelete(R"({"$maxCount":3})", 0), R"({"$maxCount":3,"$tb":0})");
}

TEST(UndeleteJson, StartsOverWhereNothingCanBeKept) {
  EXPECT_EQ(undelete("", 1), R"({"$tb":1})");
  EXPECT_EQ(undelete("[1]", 1), R"({"$tb":1})");
}

TEST(UndeleteJson, StartsOverWhereNestingWouldCostTheStack) {
  const auto nested = [](std::size_t levels) {
    return R"({"a":)" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
  };
  EXPECT_THAT(undelete(nested(64), 1), testing::StartsWith(R"({"a":[[[)"));
  EXPECT_EQ(undelete(nested(65), 1), R"({"$tb":1})");
  EXPECT_EQ(undelete(nested(1'000'000), 1), R"({"$tb":1})");
}

TEST(StreamNames, TellMetastreams) {
  EXPECT_TRUE(is_metastream("$$s"));
  EXPECT_FALSE(is_metastream("$s"));
  EXPECT_EQ(metastream_of("$settings"), "$$$settings");
  EXPECT_EQ(original_of("$$$settings"), "$settings");
}

}  // namespace
}  // namespace verger::streams
