// What a redaction has noted of its texts outlives the agent, and no longer than it is needed.
#include "nodeagent/operations/redaction/noted_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/redaction/plaintext_search_job.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/redaction/offline_redaction_job.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/manual_clock.h"
#include "tests/support/redaction/redact.h"
#include "tests/support/results.h"

namespace verger::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kNoted = "Erika Mustermann, Heidestrasse 17, 51147 Koeln, born 1964";

/// Events on a disk in memory; an attempt that is killed is one that is dropped.
class TextsThatAreNoted : public ::testing::Test {
 protected:
  TextsThatAreNoted() {
    use(std::make_unique<MemoryFileSystem>());
    test::DatabaseBuilder builder(*disk_, "/db");
    for (const auto* stream : {"customer-7", "customer-8"}) {
      auto event = builder.event();
      const auto bytes = as_bytes(kNoted);
      event.data.assign(bytes.begin(), bytes.end());
      builder.write(stream, {event});
      for (int i = 0; i < 25; ++i) {
        builder.write("stream", 2, 400);
      }
    }
    builder.close();
    list_ = value(test::plan(*disk_, "/db",
                             {.events = {value(redaction::parse_event_name("0@customer-7")),
                                         value(redaction::parse_event_name("0@customer-8"))}}))
                .to_list();
  }

  void use(std::unique_ptr<MemoryFileSystem> disk) {
    server_ = nullptr;
    disk_ = std::move(disk);
    server_ = std::make_unique<external::OfflineServer>(
        external::DatabasePlace{.database = "/db", .index = {}}, external::ServiceOptions{}, *disk_,
        clock_, random_, timers_, jobs_, jobs_, null_log());
  }
  std::shared_ptr<NotedTextStore> store() {
    return std::make_shared<NotedTextStore>(
        "/agent/redaction", NotedTextStore::Environment{.files = *disk_,
                                                        .clock = clock_,
                                                        .log = null_log(),
                                                        .make_private = [this](const Path& path) {
                                                          made_private_.push_back(path.string());
                                                          return Result<void>();
                                                        }});
  }
  std::vector<std::string> kept() {
    std::vector<std::string> out;
    if (value(disk_->exists("/agent/redaction"))) {
      for (const auto& entry : value(disk_->list("/agent/redaction"))) {
        out.push_back(entry.name);
      }
    }
    return out;
  }
  std::unique_ptr<OfflineRedactionJob> attempt() {
    return std::make_unique<OfflineRedactionJob>(*server_, list_, store());
  }

  std::unique_ptr<MemoryFileSystem> disk_;
  test::ManualClock clock_;
  SeededRandom random_{3};
  http::Timers& timers_ = http::system_timers();
  node::InlineJobRunner jobs_{timers_};
  std::unique_ptr<external::OfflineServer> server_;
  std::vector<redaction::ListedRedaction> list_;
  std::vector<std::string> made_private_;
};

TEST_F(TextsThatAreNoted, AnAttemptThatIsKilledAfterAnyStepCostsNoProof) {
  const auto before = disk_->clone();
  for (int steps = 0;; ++steps) {
    SCOPED_TRACE(steps);
    use(before->clone());
    bool done = false;
    {
      const auto killed = attempt();
      for (int n = 0; n < steps && !done; ++n) {
        done = value(killed->step({.units = 1})).kind == StepOutcome::Kind::kDone;
      }
    }
    if (done) {
      EXPECT_GT(steps, 5) << "there was nothing to interrupt";
      break;
    }
    const auto next = attempt();
    while (value(next->step({.units = 64})).kind != StepOutcome::Kind::kDone) {
    }
    EXPECT_EQ(next->result().blanked, 2U);
    EXPECT_EQ(next->result().already, 0U);
    EXPECT_EQ(next->result().texts, 2U);
    EXPECT_GT(next->result().searched_files, 3U);
    ASSERT_EQ(next->result().chunks.size(), 2U) << "also those that the killed one has replaced";
    for (const auto& chunk : next->result().chunks) {
      EXPECT_NE(chunk.from, chunk.to);
      EXPECT_EQ(chunk.records, 1U);
      EXPECT_NE(chunk.md5_before, chunk.md5_after);
    }
    EXPECT_THAT(next->result().found, IsEmpty());
    EXPECT_THAT(test::files_with(*disk_, "/db", kNoted), IsEmpty());
  }
}

TEST_F(TextsThatAreNoted, AreForTheirOwnerAloneAndHaveNoText) {
  static_cast<void>(value(attempt()->step({.units = 1})));
  ASSERT_EQ(kept().size(), 1U);
  EXPECT_THAT(made_private_, ElementsAre("/agent/redaction/" + kept().front() + ".tmp"));
  EXPECT_THAT(test::files_with(*disk_, "/agent", "Mustermann"), IsEmpty());
}

TEST_F(TextsThatAreNoted, GoOnRequestAndWithTime) {
  static_cast<void>(value(attempt()->step({.units = 1})));
  clock_.advance_seconds(std::chrono::seconds(NotedTextStore::kKept).count());
  store()->collect();
  EXPECT_EQ(kept().size(), 1U);
  clock_.advance_seconds(1);
  store()->collect();
  EXPECT_THAT(kept(), IsEmpty());
  static_cast<void>(value(attempt()->step({.units = 1})));
  ASSERT_EQ(kept().size(), 1U);
  store()->forget(redaction::encode_list(list_));
  EXPECT_THAT(kept(), IsEmpty());
}

TEST_F(TextsThatAreNoted, AHalfWrittenOrDamagedFileIsRemovedAndProvesNothing) {
  static_cast<void>(value(attempt()->step({.units = 1})));
  const Path path = "/agent/redaction/" + kept().front();
  auto bytes = value(read_file(*disk_, path));
  ok(write_file_durably(*disk_, path.string() + ".tmp", ByteView(bytes).first(20)));
  store()->collect();
  EXPECT_EQ(kept().size(), 1U);
  bytes.back() ^= std::byte{1};
  ok(write_file_durably(*disk_, path, bytes));
  EXPECT_EQ(store()->load(redaction::encode_list(list_)).error().code, Errc::kCorruption);
  EXPECT_THAT(kept(), IsEmpty());
}

}  // namespace
}  // namespace verger::agent
