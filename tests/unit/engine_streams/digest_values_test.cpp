// Digests of databases that real servers wrote have the values that they have always had: two nodes
// of which one runs an older version compare theirs.
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "engine/log/transaction_log.h"
#include "engine/streams/event_store.h"
#include "tests/support/fixtures.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"

namespace verger::streams {
namespace {

/// A line of tests/fixtures/digests.tsv.
struct Known {
  std::string archive;
  std::string logical;
  std::string readable;
  std::uint64_t readable_events = 0;
  friend void PrintTo(const Known& known, std::ostream* out) { *out << known.archive; }
};

std::vector<Known> known_digests() {
  std::ifstream file(test::fixtures_directory() / "digests.tsv");
  std::vector<Known> out;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    Known known;
    fields >> known.archive >> known.logical >> known.readable >> known.readable_events;
    out.push_back(std::move(known));
  }
  return out;
}

class DigestValues : public testing::TestWithParam<Known> {};

TEST_P(DigestValues, AreThoseOfTheFirstVersion) {
  MemoryFileSystem files;
  test::ManualClock clock;
  SeededRandom random(1);
  {
    const test::TempDirectory directory;
    test::unpack_fixture(GetParam().archive, directory.path());
    ok(files.import_tree(posix_file_system(), directory.path(), "/db"));
  }
  DatabaseOptions options;
  options.log.access = log::Access::kReadOnly;
  options.index.read_only = true;
  options.index.stream_existence_filter_size = 0;
  const auto database =
      value(Database::open(files, "/db", options, /*commit_all=*/true, clock, random, null_log()));
  const auto& log = database->transaction_log();
  Bytes buffer;
  const auto last = value(log::read_before(log, log.end(), buffer));
  ASSERT_TRUE(last.has_value());
  const auto now = std::visit([](const auto& record) { return record.timestamp; }, last->record);
  ASSERT_TRUE(files.make_directories("/tmp").has_value());
  for (const std::uint64_t memory : {std::uint64_t{64} << 20U, std::uint64_t{100}}) {
    SCOPED_TRACE(memory);
    DigestOptions with;
    with.memory_bytes = memory;
    with.files = &files;
    with.temporary_directory = "/tmp";
    with.keep_free = 0;
    with.hash_in_background = memory == 100;
    DigestJob job(*database, log.end(), now, with);
    while (value(job.step(Budget{})).kind != StepOutcome::Kind::kDone) {
    }
    EXPECT_EQ(to_hex(job.digest().logical), GetParam().logical);
    EXPECT_EQ(to_hex(job.digest().readable), GetParam().readable);
    EXPECT_EQ(job.digest().readable_events, GetParam().readable_events);
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DigestValues, testing::ValuesIn(known_digests()),
                         [](const auto& info) {
                           auto name = info.param.archive;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(DigestValuesTest, AreKnownOfManyDatabases) { EXPECT_GT(known_digests().size(), 20U); }

}  // namespace
}  // namespace verger::streams
