// Texts are found again by digests of their windows, wherever they lie and however they are cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/redaction/found_in_events.h"
#include "engine/redaction/plaintext_search_job.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/redaction/redact.h"
#include "tests/support/results.h"

namespace verger::redaction {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string noise(std::size_t size, std::uint64_t seed) {
  SeededRandom random(seed);
  std::string text;
  for (std::size_t n = 0; n < size; ++n) {
    text += static_cast<char>('a' + random.below(26));
  }
  return text;
}

class PlaintextSearch : public ::testing::Test {
 protected:
  void write(const Path& path, const std::string& text) {
    ok(disk.make_directories(path.parent_path()));
    ok(write_file_durably(disk, path, as_bytes(text)));
  }
  std::vector<SearchedFile> search() {
    PlaintextSearchJob job(disk, digests, {"/db", "/db/index"});
    while (value(job.step({})).kind != StepOutcome::Kind::kDone) {
    }
    EXPECT_EQ(job.bytes_done(), job.bytes_total());
    return job.take_files();
  }
  PlaintextScanner::Found scan(std::string_view text, std::size_t piece) {
    PlaintextScanner scanner(digests);
    for (std::size_t at = 0; at < text.size(); at += piece) {
      scanner.feed(as_bytes(text.substr(at, piece)));
    }
    return scanner.finish();
  }

  MemoryFileSystem disk;
  SeededRandom random{11};
  PlaintextDigests digests{random};
};

TEST_F(PlaintextSearch, FindsATextAtAnyOffsetAndInPiecesOfAnySize) {
  for (const std::size_t size : {8UZ, 9UZ, 31UZ, 63UZ, 64UZ, 65UZ, 300UZ}) {
    SCOPED_TRACE(size);
    const auto text = noise(size, size);
    PlaintextDigests of(random);
    ASSERT_TRUE(of.add(as_bytes(text)));
    digests = std::move(of);
    for (const std::size_t offset : {0UZ, 1UZ, 7UZ, 500UZ}) {
      const auto file = noise(offset, 1) + text + noise(100, 2);
      for (const std::size_t piece : {1UZ, 13UZ, 64UZ, 10'000UZ}) {
        const auto found = scan(file, piece);
        ASSERT_THAT(found.occurrences, SizeIs(1));
        EXPECT_EQ(found.occurrences[0],
                  (Occurrence{.offset = offset, .length = size, .whole = true}));
      }
    }
    EXPECT_THAT(scan(noise(5000, 3), 100).occurrences, IsEmpty());
  }
}

TEST_F(PlaintextSearch, FindsTheSameAfterItsDigestsWereKeptElsewhere) {
  const auto little = noise(20, 21);
  const auto much = noise(400, 22);
  ASSERT_TRUE(digests.add(as_bytes(little)));
  ASSERT_FALSE(digests.add(as_bytes("short")));
  ASSERT_TRUE(digests.add(as_bytes(much)));
  const auto file = noise(50, 1) + little + noise(9, 2) + much.substr(100, 200);
  const auto before = scan(file, 100).occurrences;
  ASSERT_THAT(before, SizeIs(2));
  const auto kept = digests.encode();
  EXPECT_EQ(as_text(kept).find(little.substr(0, 8)), std::string_view::npos);
  digests = value(PlaintextDigests::decode(kept));
  EXPECT_EQ(digests.text_count(), 3U);
  EXPECT_EQ(digests.searchable_count(), 2U);
  EXPECT_EQ(scan(file, 100).occurrences, before);
}

TEST_F(PlaintextSearch, RefusesDigestsOfWhichAnyByteIsAnother) {
  ASSERT_TRUE(digests.add(as_bytes(noise(70, 23))));
  const auto kept = digests.encode();
  for (std::size_t n = 0; n < kept.size(); ++n) {
    auto damaged = kept;
    damaged[n] ^= std::byte{1};
    EXPECT_FALSE(PlaintextDigests::decode(damaged)) << n;
    EXPECT_FALSE(PlaintextDigests::decode(ByteView(kept).first(n))) << n;
  }
}

TEST_F(PlaintextSearch, FindsEveryPartOf63BytesOfALongText) {
  const auto text = noise(400, 4);
  ASSERT_TRUE(digests.add(as_bytes(text)));
  for (std::size_t from = 0; from + 63 <= text.size(); ++from) {
    const auto found = scan(noise(17, 5) + text.substr(from, 63) + noise(17, 6), 1000);
    ASSERT_GE(found.count, 1U) << from;
    EXPECT_FALSE(found.occurrences[0].whole);
    EXPECT_GE(found.occurrences[0].length, 32U);
    EXPECT_EQ(found.occurrences[0].offset - 17, found.occurrences[0].text_offset - from);
  }
}

TEST_F(PlaintextSearch, SaysWhatCannotBeFound) {
  EXPECT_FALSE(digests.add(as_bytes("short")));
  EXPECT_FALSE(digests.add(as_bytes(std::string(1000, '\0'))));
  EXPECT_FALSE(digests.add(as_bytes(std::string(1000, '\xff'))));
  EXPECT_TRUE(digests.add(as_bytes("long enough")));
  EXPECT_EQ(digests.text_count(), 4U);
  EXPECT_EQ(digests.searchable_count(), 1U);
  EXPECT_THAT(scan(std::string(5000, '\xff'), 100).occurrences, IsEmpty());
}

TEST_F(PlaintextSearch, LooksIntoEveryFileBelowADirectory) {
  const auto text = noise(100, 8);
  ASSERT_TRUE(digests.add(as_bytes(text)));
  write("/db/chunk-000000.000000", noise(3'000'000, 9) + text);
  write("/db/a.tmp", text.substr(10, 80));
  write("/db/index/scavenging/scavenging.db", noise(50, 10) + text + text);
  write("/db/writer.chk", "12345678");
  const auto files = search();
  ASSERT_THAT(files, SizeIs(4));
  EXPECT_EQ(files[0].path, "/db/a.tmp");
  EXPECT_FALSE(files[0].clean());
  EXPECT_FALSE(files[0].found.occurrences.at(0).whole);
  EXPECT_EQ(files[1].found.occurrences.at(0).offset, 3'000'000U);
  EXPECT_THAT(files[2].found.occurrences, SizeIs(2));
  EXPECT_TRUE(files[3].clean());
}

TEST_F(PlaintextSearch, TellsAPartInAnotherEventFromWhatIsLeft) {
  const std::string common(R"({"firstName":"…","lastName":"…","streetAndNumberOfTheHouse":"…",)");
  test::DatabaseBuilder builder(disk, "/db");
  const auto write_event = [&](std::string_view stream, const std::string& text) {
    auto event = builder.event();
    const auto bytes = as_bytes(text);
    event.data.assign(bytes.begin(), bytes.end());
    builder.write(stream, {event});
  };
  const auto text = common + noise(60, 12) + "}";
  write_event("customer-1", common + noise(60, 13) + "}");
  write_event("customer-2", text);
  builder.point();
  builder.close();
  ASSERT_TRUE(digests.add(as_bytes(text)));
  const auto look = [&] {
    auto files = search();
    const auto database = value(test::open_to_read(disk, "/db"));
    ok(name_events(database->transaction_log(), files));
    return *std::ranges::find_if(files, [](const auto& file) { return file.found.count > 0; });
  };
  auto file = look();
  EXPECT_FALSE(file.clean());
  ASSERT_THAT(file.found.occurrences, SizeIs(2));
  EXPECT_EQ(file.found.occurrences[0].event, "0@customer-1");
  EXPECT_TRUE(file.found.occurrences[1].whole);
  value(test::redact(disk, "/db", {.events = {{"customer-2", EventNumber(0)}}}));
  file = look();
  ASSERT_THAT(file.found.occurrences, SizeIs(1));
  EXPECT_EQ(file.found.occurrences[0].event, "0@customer-1");
  EXPECT_TRUE(file.clean());
}

}  // namespace
}  // namespace verger::redaction
