#pragma once

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "engine/scavenge/preview.h"
#include "tests/support/fixtures.h"
#include "tests/support/scavenge/fixture_case.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {

/// A case of tests/fixtures/scavenge with a preview of the scavenge that the server ran on it.
class PreviewFixture : public testing::TestWithParam<std::string> {
 protected:
  /// nullptr, and a failure, when it cannot be read; the point is in the log of `files`.
  std::unique_ptr<MemoryFileSystem> prepared(const std::string& archive = "before") {
    auto files = fixture.unpack(archive);
    if (archive == "before" && fixture.point_is_newer()) {
      const auto server = fixture.unpack(fixture.afters().front());
      const auto replayed = replay_to_point(*files, *server, fixture.run(), *fixture.point());
      EXPECT_TRUE(replayed) << replayed.error().message;
    }
    return files;
  }

  struct Opened {
    std::unique_ptr<streams::Database> database;
    std::unique_ptr<MemoryFileSystem> scratch = std::make_unique<MemoryFileSystem>();
    SeededRandom random{11};
    ManualClock clock;
    std::unique_ptr<scavenge::Preview> preview;
  };

  /// Opens read-only, and runs the preview of the case's point to its end.
  Result<std::unique_ptr<Opened>> preview_of(FileSystem& files, bool side_by_side = false) {
    auto opened = std::make_unique<Opened>();
    VERGER_TRY(opened->database,
               open_database(files, "/db", fixture.run(), log::Access::kReadOnly));
    VERGER_RETURN_IF_ERROR(opened->scratch->make_directories("/scratch"));
    const scavenge::ScavengeParts parts{opened->database->transaction_log(),
                                        opened->database->stream_index(),
                                        files,
                                        opened->clock,
                                        opened->random,
                                        null_log()};
    auto options = fixture.run().options;
    if (side_by_side) {
      options.threads = 3;
      options.throttle_percent = 100;
      options.hash_in_background = true;
    }
    VERGER_TRY(opened->preview,
               scavenge::Preview::open(parts, {*opened->scratch, "/scratch"}, options));
    opened->preview->choose(*fixture.point());
    for (;;) {
      VERGER_TRY(const auto outcome, opened->preview->step({.units = 100}));
      if (outcome.kind == StepOutcome::Kind::kDone) {
        return opened;
      }
    }
  }

  FixtureCase fixture{GetParam()};
};

inline std::vector<std::string> previewed_cases() {
  return scavenge_cases_where([](const FixtureCase& one) { return one.server_scavenged(); });
}

}  // namespace verger::test
