#include "engine/scavenge/detail/reading_ahead.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/results.h"

namespace verger::scavenge::detail {
namespace {

constexpr std::size_t kBytesOfPart = 10;

struct Numbers {
  int source = 0;
  int number = 0;
  bool ended = false;
  std::optional<Error> error;

  [[nodiscard]] static std::size_t bytes() { return kBytesOfPart; }
};

/// What all sources of a test have read, and what is to become of them.
struct Script {
  int sources = 5;
  int parts = 20;       ///< of each
  int unreadable = -1;  ///< its second part is an error
  int unopenable = -1;
  int empty = -1;  ///< there is nothing to read in it
  std::atomic<int> held = 0;
  std::atomic<int> most_held = 0;
  std::atomic<int> reading = 0;
  std::atomic<int> most_reading = 0;
};

void note_most(std::atomic<int>& most, int now) {
  for (int before = most; now > before && !most.compare_exchange_weak(before, now);) {
  }
}

struct Counting {
  using Part = Numbers;

  Script* script = nullptr;
  int source = 0;
  int next = 0;

  Numbers read(std::uint32_t records) {
    EXPECT_GT(records, 0U);
    note_most(script->most_reading, ++script->reading);
    Numbers numbers{.source = source, .number = next++, .ended = false, .error = {}};
    numbers.ended = next == script->parts;
    if (source == script->unreadable && next == 2) {
      numbers.error = Error{Errc::kCorruption, "unreadable"};
    }
    note_most(script->most_held, ++script->held);
    --script->reading;
    return numbers;
  }
};

using Ahead = ReadingAhead<Counting>;

/// Reads everything; what is taken is noted.
class Reader {
 public:
  Reader(Script& script, Ahead::Bounds bounds) : script_(script), ahead_(bounds) {}

  Result<void> run() {
    while (true) {
      VERGER_RETURN_IF_ERROR(ahead_.open([this] { return open_next(); }));
      if (ahead_.empty()) {
        return {};
      }
      most_open = std::max<std::ptrdiff_t>(most_open, std::ranges::distance(ahead_.sources()));
      VERGER_RETURN_IF_ERROR(ahead_.step(
          1, [this](const Numbers& numbers, bool may_wait) { return take(numbers, may_wait); }));
      if (ahead_.first_is_taken()) {
        closed.push_back(ahead_.first().source);
        ahead_.drop_first();
      }
    }
  }

  std::vector<std::pair<int, int>> taken;
  std::vector<int> closed;
  std::ptrdiff_t most_open = 0;
  bool waits_for_last_part = false;  ///< it is taken where nothing else is to be done
  bool has_waited = false;

 private:
  Result<std::optional<Ahead::Opened>> open_next() {
    if (opened_ == script_.sources) {
      return std::optional<Ahead::Opened>();
    }
    if (opened_ == script_.unopenable) {
      return Error{Errc::kIo, "unopenable"};
    }
    const int source = opened_++;
    return Ahead::Opened{.source = {.script = &script_, .source = source},
                         .ended = source == script_.empty};
  }
  Result<bool> take(const Numbers& numbers, bool may_wait) {
    if (numbers.ended && waits_for_last_part && !may_wait) {
      has_waited = true;
      return false;
    }
    --script_.held;
    if (numbers.error) {
      return *numbers.error;
    }
    taken.emplace_back(numbers.source, numbers.number);
    return true;
  }

  Script& script_;
  Ahead ahead_;
  int opened_ = 0;
};

class ReadingAheadTest : public testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static Ahead::Bounds bounds() {
    return {.threads = GetParam(), .sources = GetParam() == 1 ? 1U : 4U, .bytes = 1000};
  }
  void expect_all_of(int sources, const Reader& reader) const {
    std::vector<std::pair<int, int>> expected;
    for (int source = 0; source < sources; ++source) {
      for (int number = 0; source != script.empty && number < script.parts; ++number) {
        expected.emplace_back(source, number);
      }
    }
    EXPECT_EQ(reader.taken, expected);
  }

  Script script;
};

TEST_P(ReadingAheadTest, TakesAllOfOneSourceAfterTheOther) {
  script.empty = 3;
  Reader reader(script, bounds());
  ok(reader.run());
  expect_all_of(script.sources, reader);
  EXPECT_EQ(reader.closed, (std::vector{0, 1, 2, 3, 4}));
  EXPECT_LE(script.most_reading, static_cast<int>(GetParam()));
  EXPECT_LE(reader.most_open, static_cast<std::ptrdiff_t>(bounds().sources));
}

TEST_P(ReadingAheadTest, ReportsWhatCannotBeReadWhenItIsTaken) {
  script.unreadable = 2;
  Reader reader(script, bounds());
  const auto ended = reader.run();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "unreadable");
  EXPECT_EQ(reader.closed, (std::vector{0, 1}));
  ASSERT_FALSE(reader.taken.empty());
  EXPECT_EQ(reader.taken.back(), std::pair(2, 0)) << "what was read before it";
}

TEST_P(ReadingAheadTest, ReportsWhatCannotBeOpenedOnceItIsTheFirst) {
  script.unopenable = 2;
  Reader reader(script, bounds());
  const auto ended = reader.run();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "unopenable");
  expect_all_of(2, reader);
  EXPECT_EQ(reader.closed, (std::vector{0, 1}));
}

TEST_P(ReadingAheadTest, OffersAPartAgainThatWasNotTaken) {
  script.parts = 3;
  Reader reader(script, bounds());
  reader.waits_for_last_part = true;
  ok(reader.run());
  expect_all_of(script.sources, reader);
  EXPECT_EQ(reader.has_waited, GetParam() > 1) << "there is something else to do with threads only";
}

INSTANTIATE_TEST_SUITE_P(Threads, ReadingAheadTest, testing::Values(1, 2, 4));

TEST(ReadingAhead, HoldsNoMoreThanItMay) {
  Script script;
  script.parts = 500;
  constexpr int kMostParts = 30;
  Reader reader(script, {.threads = 3, .sources = 3, .bytes = kMostParts * kBytesOfPart});
  ok(reader.run());
  EXPECT_EQ(reader.taken.size(), 2500U);
  // Each thread reads one part whose size it cannot know; the first source is read in any case,
  // while all that was read of it is being taken.
  EXPECT_LE(script.most_held, 2 * kMostParts + 3);
}

TEST(ReadingAhead, ReadsTheFirstSourceWhereThereIsNoRoom) {
  Script script;
  Reader reader(script, {.threads = 2, .sources = 2, .bytes = 0});
  ok(reader.run());
  EXPECT_EQ(reader.taken.size(), 100U);
  EXPECT_LE(script.most_held, 2);
}

TEST(ReadingAhead, WaitsForNothingWhileMoreIsRead) {
  Script script;
  Ahead ahead({.threads = 1, .sources = 1, .bytes = 1000});
  int next = 0;
  const auto open = [&]() -> Result<std::optional<Ahead::Opened>> {
    return next == 1
               ? std::nullopt
               : std::optional(Ahead::Opened{.source = {.script = &script, .source = next++}});
  };
  std::vector<bool> waits;
  const auto take = [&](const Numbers& /*numbers*/, bool may_wait) -> Result<bool> {
    waits.push_back(may_wait);
    return may_wait;
  };
  ok(ahead.open(open));
  while (!ahead.first_is_taken()) {
    ok(ahead.step(1, take));
  }
  EXPECT_FALSE(waits.front()) << "more of it is to be read";
  EXPECT_TRUE(waits.back()) << "all is read";
  EXPECT_TRUE(std::ranges::is_sorted(waits));
}

TEST(ReadingAhead, WorksWithoutItsThreads) {
  Script script;
  Ahead ahead({.threads = 3, .sources = 2, .bytes = 1000});
  int next = 0;
  ok(ahead.open([&]() -> Result<std::optional<Ahead::Opened>> {
    return Ahead::Opened{.source = {.script = &script, .source = next++}};
  }));
  EXPECT_EQ(next, 2);
  ahead.end_threads();
  int taken = 0;
  while (!ahead.first_is_taken()) {
    ok(ahead.step(1, [&](const Numbers& /*numbers*/, bool /*may_wait*/) -> Result<bool> {
      ++taken;
      return true;
    }));
  }
  EXPECT_EQ(taken, script.parts);
  ahead.drop_all();
  EXPECT_TRUE(ahead.empty());
}

}  // namespace
}  // namespace verger::scavenge::detail
