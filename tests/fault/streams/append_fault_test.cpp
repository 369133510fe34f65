// Whichever disk operation fails, and whenever power is lost: what was acknowledged is there, what
// is there was written, and writing continues.
#include <gtest/gtest.h>
#include <map>

#include "engine/base/memory_file_system.h"
#include "tests/support/database/database_builder.h"

namespace verger::streams {
namespace {

test::BuilderOptions small(std::uint64_t seed) {
  test::BuilderOptions options;
  options.chunk_size = 4096;
  options.max_mem_table_size = 8;
  options.seed = seed;
  return options;
}

struct Stream {
  std::vector<Uuid> attempted;
  std::size_t acknowledged = 0;
};
using Written = std::map<std::string, Stream>;

/// A few chunks and tables. Throws at the first failure.
void write_workload(FileSystem& disk, Written& written) {
  test::DatabaseBuilder builder(disk, "/db", small(1));
  const auto write = [&](const std::string& name, int count) {
    auto& stream = written[name];
    std::vector<NewEvent> events;
    for (int i = 0; i < count; ++i) {
      events.push_back(builder.event(100));
      stream.attempted.push_back(events.back().id);
    }
    builder.write(name, std::move(events));
    stream.acknowledged += static_cast<std::size_t>(count);
  };
  for (int i = 0; i < 20; ++i) {
    write(fmt::format("s-{}", i % 3), 1 + i % 4);
    if (i == 6) {
      builder.point();
    }
    if (i == 12) {
      builder.close();
      builder.open();
    }
  }
}

void expect_written(Database& database, const Written& written) {
  for (const auto& [name, stream] : written) {
    SCOPED_TRACE(name);
    const auto slice = database.read_forward(name, EventNumber(0), 1000);
    ASSERT_TRUE(slice) << slice.error().message;
    EXPECT_GE(slice->events.size(), stream.acknowledged);
    ASSERT_LE(slice->events.size(), stream.attempted.size());
    for (std::size_t i = 0; i < slice->events.size(); ++i) {
      EXPECT_EQ(slice->events[i].id, stream.attempted[i]);
      EXPECT_EQ(slice->events[i].number.value(), static_cast<std::int64_t>(i));
    }
  }
}

/// Fails operation `nth`, or it and all later ones, then loses what was not synced. False when the
/// workload has no such operation.
bool survives(std::uint64_t nth, bool all_later, std::optional<std::uint64_t> torn_seed) {
  MemoryFileSystem disk;
  bool failed = false;
  disk.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.number == nth || (all_later && operation.number > nth)) {
      failed = true;
      return Error{Errc::kIo, "the test fails this operation"};
    }
    return std::nullopt;
  });
  Written written;
  try {
    write_workload(disk, written);
  } catch (const std::runtime_error&) {
    EXPECT_TRUE(failed);
  }
  disk.set_fault_hook(nullptr);
  disk.cut_power(torn_seed);
  for (int opening = 0; opening < 2; ++opening) {
    test::DatabaseBuilder again(disk, "/db", small(1000 + nth));
    expect_written(again.database(), written);
    again.write("after");
  }
  return failed;
}

TEST(AppendFault, EveryDiskOperationMayFail) {
  std::uint64_t nth = 0;
  for (;; ++nth) {
    SCOPED_TRACE(nth);
    if (!survives(nth, /*all_later=*/false, std::nullopt) || ::testing::Test::HasFailure()) {
      break;
    }
  }
  EXPECT_GT(nth, 100U);
}

TEST(AppendFault, ThePowerMayGoBeforeEveryDiskOperation) {
  std::uint64_t nth = 0;
  for (;; ++nth) {
    SCOPED_TRACE(nth);
    if (!survives(nth, /*all_later=*/true, std::nullopt) || ::testing::Test::HasFailure()) {
      break;
    }
  }
  EXPECT_GT(nth, 100U);
}

TEST(AppendFault, WritesMayBeTornWhenThePowerGoes) {
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    if (!survives(nth, /*all_later=*/true, /*torn_seed=*/nth * 7919) ||
        ::testing::Test::HasFailure()) {
      break;
    }
  }
}

}  // namespace
}  // namespace verger::streams
