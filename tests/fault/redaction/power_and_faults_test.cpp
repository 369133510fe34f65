// Every disk operation of a redaction fails once, and at every one the power goes: each chunk is as
// it was or redacted, and a second run finishes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/database/database_builder.h"
#include "tests/support/redaction/redact.h"
#include "tests/support/results.h"

namespace verger::test {
namespace {

const Path kDirectory = "/db";
constexpr int kEvents = 6;

std::string secret(int n) { return fmt::format("the secret of customer number {}", n); }

redaction::RedactionRequest request() {
  redaction::RedactionRequest made;
  for (int n = 0; n < kEvents; ++n) {
    made.events.push_back({"customer", EventNumber(n)});
  }
  return made;
}

constexpr redaction::RedactionConsent kConsent{.complete_chunk = true};

/// Events in three chunks, of which the last is active, beside one that nothing is done to.
std::unique_ptr<MemoryFileSystem> small_database() {
  MemoryFileSystem files;
  DatabaseBuilder builder(files, kDirectory, {.chunk_size = 4096});
  builder.write("other", 12, 200);
  builder.point();
  for (int n = 0; n < kEvents; ++n) {
    auto event = builder.event();
    const auto text = secret(n);
    const auto bytes = as_bytes(text);
    event.data.assign(bytes.begin(), bytes.end());
    builder.write("customer", {event});
    builder.write("other", 3, 420);
  }
  builder.close();
  return files.clone();  // all of it durable
}

/// The log's records by position, with what readers get of each event.
std::map<std::int64_t, std::string> records(FileSystem& files) {
  std::map<std::int64_t, std::string> found;
  const auto database = value(open_to_read(files, kDirectory));
  const auto& log = database->transaction_log();
  log::LogCursor cursor(log, LogPosition(0), log.end());
  while (const auto record = value(cursor.next())) {
    const auto* prepare = record->prepare();
    found[record->position().value()] =
        prepare == nullptr ? "-" : fmt::format("{} {}", prepare->flags, as_text(prepare->data));
  }
  for (const auto& chunk : log.chunks()) {
    if (chunk->completed()) {
      ok(chunk->verify_md5());
    }
  }
  return found;
}

struct Reference {
  std::unique_ptr<MemoryFileSystem> before = small_database();
  std::map<std::int64_t, std::string> records_before = records(*before);
  std::map<std::int64_t, std::string> records_after;
  std::uint64_t operations = 0;

  Reference() {
    const auto files = before->clone();
    files->reset_count();
    const auto chunks = redact(*files, kDirectory, request(), kConsent);
    EXPECT_TRUE(chunks) << chunks.error().message;
    EXPECT_EQ(chunks->size(), 3U);
    operations = files->operation_count();
    records_after = records(*files);
    for (int n = 0; n < kEvents; ++n) {
      EXPECT_EQ(files_with(*files, kDirectory, secret(n)), std::vector<std::string>{});
    }
  }
};

const Reference& reference() {
  static const Reference instance;
  return instance;
}

enum class Fault : std::uint8_t { kError, kNoSpace, kPowerCut, kTornPowerCut, kKill };

/// Runs with a fault at operation `nth`; false when the run has fewer operations.
bool disturb(std::uint64_t nth, Fault fault) {
  const auto files = reference().before->clone();
  bool reached = false;
  files->reset_count();
  files->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.number != nth) {
      return std::nullopt;
    }
    reached = true;
    if (fault == Fault::kPowerCut) {
      files->cut_power();
    } else if (fault == Fault::kTornPowerCut) {
      files->cut_power(nth);
    } else if (fault == Fault::kKill) {
      files->kill_process();
    }
    return Error{fault == Fault::kNoSpace ? Errc::kNoSpace : Errc::kIo,
                 fmt::format("injected at {} {} {}", nth, operation.kind, operation.path.string())};
  });
  const auto first = redact(*files, kDirectory, request(), kConsent);
  files->set_fault_hook({});
  if (!reached) {
    EXPECT_TRUE(first) << first.error().message;
    return false;
  }
  // Each record as it was or as it is to be.
  for (const auto& [position, text] : records(*files)) {
    EXPECT_TRUE(text == reference().records_before.at(position) ||
                text == reference().records_after.at(position))
        << position << ": " << text;
  }
  const auto second = redact(*files, kDirectory, request(), kConsent);
  EXPECT_TRUE(second) << second.error().message;
  EXPECT_TRUE(records(*files) == reference().records_after);
  // It is so for good, and the text is gone from every file, whatever the first run left.
  files->cut_power();
  EXPECT_TRUE(records(*files) == reference().records_after);
  for (int n = 0; n < kEvents; ++n) {
    EXPECT_EQ(files_with(*files, kDirectory, secret(n)), std::vector<std::string>{});
  }
  // A node opens it and writes on.
  DatabaseBuilder builder(*files, kDirectory, {.chunk_size = 4096});
  builder.write("other");
  return true;
}

void disturb_everywhere(Fault fault) {
  std::uint64_t nth = 0;
  for (;; ++nth) {
    SCOPED_TRACE(fmt::format("operation {}", nth));
    if (!disturb(nth, fault) || testing::Test::HasFailure()) {
      break;
    }
  }
  std::cout << fmt::format("{} of {} operations disturbed\n", nth, reference().operations);
  EXPECT_GE(nth, reference().operations);
}

TEST(DisturbedRedaction, SurvivesTheFailureOfAnyDiskOperation) {
  disturb_everywhere(Fault::kError);
}
TEST(DisturbedRedaction, SurvivesAFullDiskAtAnyOperation) { disturb_everywhere(Fault::kNoSpace); }
TEST(DisturbedRedaction, SurvivesAPowerCutAtAnyDiskOperation) {
  disturb_everywhere(Fault::kPowerCut);
}
TEST(DisturbedRedaction, SurvivesAPowerCutThatTearsWrites) {
  disturb_everywhere(Fault::kTornPowerCut);
}
TEST(DisturbedRedaction, SurvivesBeingKilledAtAnyDiskOperation) {
  disturb_everywhere(Fault::kKill);
}

}  // namespace
}  // namespace verger::test
