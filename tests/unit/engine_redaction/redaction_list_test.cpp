#include "engine/redaction/redaction_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/redaction/redaction_plan.h"
#include "tests/support/results.h"

namespace verger::redaction {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ListedRedaction entry(std::string stream, std::int64_t number, std::int64_t position) {
  ListedRedaction made{.stream = std::move(stream),
                       .number = EventNumber(number),
                       .position = LogPosition(position)};
  made.digest.fill(std::byte{0xAB});
  return made;
}

TEST(RedactionList, HasTheDocumentedForm) {
  EXPECT_EQ(
      encode_list({entry("customer \"7\"", 12, 4711)}),
      R"({"format":"verger-redactions","version":1})"
      "\n"
      R"({"stream":"customer \"7\"","number":12,"position":4711,"metadata":false,"digest":")" +
          [] {
            std::string digits;
            for (int n = 0; n < 32; ++n) {
              digits += "ab";
            }
            return digits;
          }() +
          "\"}\n");
}

TEST(RedactionList, ComesBackAsItWas) {
  const std::vector list = {entry("a", 0, 1), entry("b,c@d", 7, 99)};
  EXPECT_EQ(value(decode_list(encode_list(list))), list);
  EXPECT_THAT(value(decode_list(encode_list({}))), IsEmpty());
}

TEST(RedactionList, RefusesWhatIsNone) {
  const auto error = [](std::string_view text) {
    const auto list = decode_list(text);
    return list ? std::string() : list.error().message;
  };
  EXPECT_THAT(error(""), HasSubstr("line 1: is missing"));
  EXPECT_THAT(error("{}\n"), HasSubstr("line 1"));
  EXPECT_THAT(error("{\"format\":\"verger-redactions\",\"version\":2}\n"),
              HasSubstr("another version"));
  auto text = encode_list({entry("a", 0, 1)});
  text.pop_back();
  EXPECT_THAT(error(text), HasSubstr("line 2: does not end"));
  text = encode_list({entry("a", 0, 1)});
  text.replace(text.find("abab"), 1, "g");
  EXPECT_THAT(error(text), HasSubstr("line 2: the digest is not hexadecimal"));
}

TEST(RedactionList, GrowsInItsFileWithoutRepetitions) {
  MemoryFileSystem disk;
  ok(append_to_list(disk, "/list", {entry("a", 0, 1)}));
  ok(append_to_list(disk, "/list", {entry("a", 0, 1), entry("b", 3, 8)}));
  EXPECT_THAT(value(read_list(disk, "/list")), ElementsAre(entry("a", 0, 1), entry("b", 3, 8)));
  auto more = entry("b", 3, 8);
  more.metadata = true;
  ok(append_to_list(disk, "/list", {more}));
  EXPECT_THAT(value(read_list(disk, "/list")), ElementsAre(entry("a", 0, 1), more));
  EXPECT_EQ(append_to_list(disk, "/list", {entry("other", 0, 1)}).error().code, Errc::kConflict);
}

TEST(RedactionList, NamesOfEventsMayHoldAnyCharacter) {
  EXPECT_EQ(value(parse_event_name("12@a@b,c")), (EventName{"a@b,c", EventNumber(12)}));
  EXPECT_FALSE(parse_event_name("orders@12"));
  EXPECT_FALSE(parse_event_name("12@"));
  EXPECT_FALSE(parse_event_name("-1@a"));
}

}  // namespace
}  // namespace verger::redaction
