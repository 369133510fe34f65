// Ten years of a policy's windows and due times, by a controller that is away at times, judged
// minute by minute by what the C library says wall clocks show.
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "controller/scheduler/due.h"
#include "tests/simulation/decade/wall_calendar.h"

namespace verger::controller {
namespace {

using sim::kDecadeMinutes;
using std::chrono::minutes;
using std::chrono::seconds;
using Action = DueDecision::Action;

Instant instant_at(int minute) { return Instant(seconds(sim::kDecadeBegins) + minutes(minute)); }
int minute_at(Instant instant) { return static_cast<int>((instant - instant_at(0)) / minutes(1)); }

class Decade : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  Decade() : random_(GetParam()), written_(sim::any_policy(random_)), calendar_(written_) {
    const auto read = parse_schedule_policy(written_.yaml());
    if (!read) {
      throw std::invalid_argument(to_text(read.error()) + written_.yaml());
    }
    policy_ = *read;
  }

  SeededRandom random_;
  sim::WrittenPolicy written_;
  sim::WallCalendar calendar_;
  SchedulePolicy policy_;
};

TEST_P(Decade, WindowsAreOpenWhenTheWallClockSaysSo) {
  SCOPED_TRACE(written_.yaml());
  const auto set = openings(policy_.windows, {instant_at(0), instant_at(kDecadeMinutes)});
  std::vector<bool> open(kDecadeMinutes, false);
  for (const auto& each : set.intervals()) {
    ASSERT_EQ((each.from - instant_at(0)) % minutes(1), seconds(0));
    ASSERT_EQ((each.to - instant_at(0)) % minutes(1), seconds(0));
    std::fill(open.begin() + minute_at(each.from), open.begin() + minute_at(each.to), true);
  }
  for (int minute = 0; minute < kDecadeMinutes; ++minute) {
    const auto at = static_cast<std::size_t>(minute);
    ASSERT_EQ(open[at], calendar_.open[at])
        << policy_.schedules.front().zone().format(instant_at(minute));
  }
}

TEST_P(Decade, EachWallClockTimeIsDueOnce) {
  SCOPED_TRACE(written_.yaml());
  std::set<int> due;
  for (const auto& schedule : policy_.schedules) {
    for (auto at = schedule.next_after(instant_at(-1)); at && minute_at(*at) < kDecadeMinutes;
         at = schedule.next_after(*at)) {
      due.insert(minute_at(*at));
    }
  }
  EXPECT_EQ(std::vector<int>(due.begin(), due.end()), calendar_.due);
  EXPECT_GT(due.size(), 400U);
}

/// When the controller is away, in minutes of the decade.
std::vector<std::pair<int, int>> any_absences(Random& random) {
  std::vector<std::pair<int, int>> out;
  for (int at = 0;;) {
    at += 1 + static_cast<int>(random.below(60 * 1'440));
    const auto back = at + 1 + static_cast<int>(random.below(random.below(4) == 0 ? 4'000 : 90));
    if (back >= kDecadeMinutes) {
      return out;
    }
    out.emplace_back(at, back);
    at = back;
  }
}

struct Start {
  int due = 0;
  int at = 0;
};
/// What happened in the decade, in minutes.
struct Story {
  std::vector<Start> starts;
  std::vector<Start> drops;
  std::vector<std::pair<int, int>> runs;
};

/// A controller that looks where decide_due() says, when it is back, and when a run ends.
Story ten_years(const SchedulePolicy& policy, const std::vector<std::pair<int, int>>& absences,
                Random& random) {
  Story out;
  auto absence = absences.begin();
  auto handled = instant_at(-1);
  int run_ends = 0;
  for (int now = 0; now < kDecadeMinutes;) {
    if (absence != absences.end() && now >= absence->first) {
      now = std::max(now, absence->second);  // a run continues at the nodes
      ++absence;
      continue;
    }
    const DueBlock block{.reason = now < run_ends ? "the run before has not ended" : "",
                         .own_run_at_work = now < run_ends};
    const auto decision = decide_due(policy, policy.windows, handled, instant_at(now), block);
    if (decision.action == Action::kStart || decision.action == Action::kDrop) {
      handled = decision.due;
      const Start story{.due = minute_at(decision.due), .at = now};
      if (decision.action == Action::kDrop) {
        out.drops.push_back(story);
      } else {
        out.starts.push_back(story);
        run_ends = now + 1 + static_cast<int>(random.below(random.below(20) == 0 ? 3'000 : 100));
        out.runs.emplace_back(now, run_ends);
      }
    }
    auto next = decision.wake ? minute_at(*decision.wake) : kDecadeMinutes;
    if (now < run_ends) {
      next = std::min(next, run_ends);
    }
    if (absence != absences.end()) {
      next = std::min(next, absence->first);
    }
    if (next <= now) {
      throw std::logic_error("it is to look again at a time that is past: " + decision.reason);
    }
    now = next;
  }
  return out;
}

TEST_P(Decade, EachDueTimeIsStartedOnceInsideTheWindowsOrDropped) {
  SCOPED_TRACE(written_.yaml());
  const auto absences = any_absences(random_);
  const auto story = ten_years(policy_, absences, random_);
  const auto away = [&absences](int minute) {
    const auto next = std::ranges::upper_bound(absences, minute, {},
                                               [](const auto& each) { return each.second; });
    return next != absences.end() && next->first <= minute;
  };
  const auto open = [this](int minute) { return calendar_.open[static_cast<std::size_t>(minute)]; };
  std::set<int> settled;
  for (const auto& each : story.drops) {
    EXPECT_TRUE(settled.insert(each.due).second) << each.due;
  }
  for (const auto& each : story.starts) {
    const auto text = policy_.schedules.front().zone().format(instant_at(each.at));
    EXPECT_TRUE(std::ranges::binary_search(calendar_.due, each.due)) << text;
    EXPECT_TRUE(settled.insert(each.due).second) << text;
    EXPECT_GE(each.at, each.due) << text;
    EXPECT_TRUE(open(each.at)) << text;
    EXPECT_FALSE(away(each.at)) << text;
    if (policy_.catch_up == CatchUp::kSkip) {
      EXPECT_LE(minutes(each.at - each.due), kDueGrace) << text;
    }
    if (policy_.catch_up == CatchUp::kRunIfInWindow) {
      for (int minute = each.due; minute <= each.at; ++minute) {
        EXPECT_TRUE(open(minute)) << text;
      }
    }
  }
  const auto at_work = [&story](int minute) {
    const auto run = std::ranges::upper_bound(story.runs, minute, {}, &std::pair<int, int>::second);
    return run != story.runs.end() && run->first < minute;
  };
  // Late only while the windows were closed, the controller away or a run at work.
  for (const auto& each : story.starts) {
    for (int minute = each.due; minute < each.at; ++minute) {
      EXPECT_TRUE(!open(minute) || away(minute) || at_work(minute))
          << policy_.schedules.front().zone().format(instant_at(minute));
    }
  }
  // None is forgotten.
  for (const auto due : calendar_.due) {
    if (open(due) && !away(due) && !at_work(due)) {
      EXPECT_TRUE(std::ranges::binary_search(story.starts, due, {}, &Start::at))
          << policy_.schedules.front().zone().format(instant_at(due));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, Decade, ::testing::Range<std::uint64_t>(1, 13));

}  // namespace
}  // namespace verger::controller
