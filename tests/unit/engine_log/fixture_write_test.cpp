// The server's databases opened for writing: only what is not live goes, the log continues, and the
// text of every epoch comes out as the server writes it.
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "engine/log/transaction_log.h"
#include "tests/support/fixtures.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"

namespace verger::log {
namespace {

struct Database {
  MemoryFileSystem files;
  test::ManualClock clock;
  SeededRandom random{1};

  explicit Database(const std::string& archive) {
    const test::TempDirectory directory;
    test::unpack_fixture(archive, directory.path());
    ok(files.import_tree(posix_file_system(), directory.path(), "/db"));
  }
  std::unique_ptr<TransactionLog> open(Access access) {
    LogOptions options;
    options.access = access;
    return value(TransactionLog::open(files, "/db", options, clock, random, null_log()));
  }
};

/// All records below `end`: positions and bytes.
std::map<std::int64_t, std::string> records_of(const TransactionLog& log, LogPosition end) {
  std::map<std::int64_t, std::string> found;
  LogCursor cursor(log, LogPosition(0), end);
  while (const auto record = value(cursor.next())) {
    found[record->position().value()] = as_text(record->framed);
  }
  return found;
}

std::vector<std::string> archives() {
  std::vector<std::string> found;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::fixtures_directory())) {
    if (entry.path().extension() == ".zst" &&
        entry.path().parent_path().filename() != "journal") {  // databases alone
      found.push_back(entry.path().lexically_relative(test::fixtures_directory()).string());
    }
  }
  std::ranges::sort(found);
  return found;
}

class ServerDatabaseForWriting : public testing::TestWithParam<std::string> {};

TEST_P(ServerDatabaseForWriting, KeepsItsRecordsAndContinues) {
  Database database(GetParam());
  const auto before = [&] {
    const auto log = database.open(Access::kReadOnly);
    return records_of(*log, log->end());
  }();
  LogPosition end;
  {
    const auto log = database.open(Access::kWrite);
    end = log->end();
    EXPECT_EQ(records_of(*log, end), before);
    const auto last = log->epochs().last();
    const EpochNumber next(last ? last->number.value() + 1 : 0);
    value(log->append_epoch(next, database.random.uuid()));
    ok(log->complete_chunk());
    for (const auto& chunk : log->chunks()) {
      if (chunk->completed()) {
        ok(chunk->verify_md5());
      }
    }
  }
  const auto log = database.open(Access::kReadOnly);
  EXPECT_EQ(records_of(*log, end), before);
  // Every epoch record re-encodes to its own text.
  LogCursor cursor(*log, LogPosition(0), log->end());
  while (const auto record = value(cursor.next())) {
    if (const auto* system = std::get_if<SystemRecord>(&record->record)) {
      const auto epoch = value(decode_epoch_json(system->json));
      EXPECT_EQ(encode_epoch_json(epoch), as_text(system->json));
      EXPECT_EQ(epoch.timestamp, system->timestamp);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ServerDatabaseForWriting, testing::ValuesIn(archives()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(KilledServer, TheRecoveredLogStartsWithWhatWeReadAfterTheKill) {
  Database killed("plain/killed-while-writing/database.tar.zst");
  Database recovered("plain/killed-while-writing/recovered.tar.zst");
  const auto ours = killed.open(Access::kWrite);
  const auto theirs = recovered.open(Access::kReadOnly);
  EXPECT_GT(theirs->end(), ours->end());
  EXPECT_EQ(records_of(*theirs, ours->end()), records_of(*ours, ours->end()));
}

}  // namespace
}  // namespace verger::log
