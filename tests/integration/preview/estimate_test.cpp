// The estimate of every fixture is what the scavenge then does, to the byte.
#include "engine/scavenge/estimate.h"

#include <gmock/gmock.h>
#include <numeric>

#include "tests/integration/preview/preview_fixture.h"

namespace verger::test {
namespace {

using scavenge::Estimate;

/// What a run reports, in the form of an estimate.
class Recorder final : public scavenge::ScavengeEvents {
 public:
  void chunk_executed(const scavenge::ChunkExecuted& chunk) override { chunks.push_back(chunk); }
  void chunks_merged(const scavenge::ChunksMerged& merge) override { merges.push_back(merge); }
  void table_scavenged(const scavenge::TableScavenged& table) override { tables.push_back(table); }

  std::vector<scavenge::ChunkExecuted> chunks;
  std::vector<scavenge::ChunksMerged> merges;
  std::vector<scavenge::TableScavenged> tables;
};

std::vector<std::string> in_words(const Estimate& estimate) {
  std::vector<std::string> lines;
  for (const auto& chunk : estimate.chunks) {
    if (chunk.executed) {
      lines.push_back(fmt::format("chunk {}-{} weight {} kept {} removed {} saved {}", chunk.start,
                                  chunk.end, chunk.weight, chunk.kept.records,
                                  chunk.removed.records,
                                  static_cast<std::int64_t>(chunk.file_bytes_before) -
                                      static_cast<std::int64_t>(chunk.file_bytes_after)));
    }
  }
  for (const auto& merge : estimate.merges) {
    lines.push_back(fmt::format("merge {}-{} saved {}", merge.start, merge.end,
                                static_cast<std::int64_t>(merge.bytes_before) -
                                    static_cast<std::int64_t>(merge.bytes_after)));
  }
  for (const auto& table : estimate.tables) {
    lines.push_back(fmt::format("table {}.{} kept {} removed {} saved {} {}", table.level,
                                table.position, table.entries_kept, table.entries_removed,
                                static_cast<std::int64_t>(table.file_bytes_before) -
                                    static_cast<std::int64_t>(table.file_bytes_after),
                                table.rewritten));
  }
  return lines;
}

std::vector<std::string> in_words(const Recorder& run) {
  std::vector<std::string> lines;
  for (const auto& chunk : run.chunks) {
    lines.push_back(fmt::format("chunk {}-{} weight {} kept {} removed {} saved {}", chunk.start,
                                chunk.end, chunk.weight, chunk.records_kept,
                                chunk.records_discarded, chunk.space_saved));
  }
  for (const auto& merge : run.merges) {
    lines.push_back(fmt::format("merge {}-{} saved {}", merge.start, merge.end, merge.space_saved));
  }
  for (const auto& table : run.tables) {
    lines.push_back(fmt::format("table {}.{} kept {} removed {} saved {} {}", table.level,
                                table.index, table.entries_kept, table.entries_deleted,
                                table.space_saved, table.scavenged));
  }
  return lines;
}

Result<Estimate> estimate_of(scavenge::Preview& preview, std::size_t top = 5) {
  scavenge::EstimateJob job(preview, top);
  for (;;) {
    VERGER_TRY(const auto outcome, job.step({.units = 64}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      EXPECT_EQ(job.bytes_done() <= job.bytes_total() + 1, true);
      return job.estimate();
    }
  }
}

class EstimateFixture : public PreviewFixture {
 protected:
  void compare(MemoryFileSystem& files) {
    const auto before = files.clone();
    const auto opened = preview_of(files);
    ASSERT_TRUE(opened) << opened.error().message;
    const auto estimate = estimate_of(*(*opened)->preview);
    ASSERT_TRUE(estimate) << estimate.error().message;
    (*opened)->preview.reset();
    EXPECT_THAT(*(*opened)->scratch->list("/scratch"), testing::IsEmpty());
    compare_side_by_side(files, *estimate);

    Recorder recorder;
    auto run = fixture.run();
    run.events = &recorder;
    const auto result = run_scavenge(files, "/db", run);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(in_words(*estimate), in_words(recorder));
    EXPECT_EQ(estimate->removed.records, result->progress.records_discarded);
    EXPECT_EQ(estimate->kept.records, result->progress.records_kept);
    EXPECT_EQ(estimate->space_saved, result->progress.space_saved);
    EXPECT_EQ(estimate->chunks_executed, result->progress.chunks_executed);
    EXPECT_EQ(estimate->entries_removed, result->progress.entries_discarded);
    // The bytes: what is missing in the log afterwards.
    EXPECT_EQ(estimate->removed.bytes, record_bytes(*before) - record_bytes(files));
    const auto by_rule =
        std::accumulate(estimate->by_rule.begin(), estimate->by_rule.end(), scavenge::Volume{},
                        [](auto sum, const auto& one) { return sum += one; });
    EXPECT_EQ(by_rule, estimate->removed);
  }

  /// Chunks that are read side by side give the same, in the same order.
  void compare_side_by_side(MemoryFileSystem& files, const Estimate& one_by_one) {
    const auto opened = preview_of(files, /*side_by_side=*/true);
    ASSERT_TRUE(opened) << opened.error().message;
    const auto estimate = estimate_of(*(*opened)->preview);
    ASSERT_TRUE(estimate) << estimate.error().message;
    EXPECT_EQ(in_words(*estimate), in_words(one_by_one));
    EXPECT_EQ(estimate->removed, one_by_one.removed);
    EXPECT_EQ(estimate->kept, one_by_one.kept);
    EXPECT_EQ(estimate->by_rule, one_by_one.by_rule);
    EXPECT_EQ(estimate->streams_losing, one_by_one.streams_losing);
    ASSERT_EQ(estimate->top.size(), one_by_one.top.size());
    for (std::size_t n = 0; n < estimate->top.size(); ++n) {
      EXPECT_EQ(estimate->top[n].stream, one_by_one.top[n].stream);
      EXPECT_EQ(estimate->top[n].removed, one_by_one.top[n].removed);
    }
  }

  static std::uint64_t record_bytes(FileSystem& files) {
    std::uint64_t bytes = 0;
    for (const auto& chunk : take_snapshot(files, "/db").chunks) {
      for (const auto& [position, framed] : chunk.records) {
        bytes += framed.size();
      }
    }
    return bytes;
  }
};

TEST_P(EstimateFixture, IsWhatTheScavengeThenDoes) {
  const auto files = prepared();
  compare(*files);
}

TEST_P(EstimateFixture, ResumesAnUnfinishedScavenge) {
  for (int stage = 1; stage < static_cast<int>(scavenge::Stage::kCleaning); ++stage) {
    SCOPED_TRACE(scavenge::to_string(static_cast<scavenge::Stage>(stage)));
    const auto files = prepared();
    auto run = fixture.run();
    run.options.stop_after = {static_cast<scavenge::Stage>(stage), 1};
    if (run_scavenge(*files, "/db", run)) {
      continue;  // the stage has no unit
    }
    compare(*files);
  }
}

TEST_P(EstimateFixture, ChangesNothing) {
  const auto files = prepared();
  const auto before = files->clone();
  {
    const auto opened = preview_of(*files);
    ASSERT_TRUE(opened) << opened.error().message;
    ASSERT_TRUE(estimate_of(*(*opened)->preview));
  }
  const auto compare_directory = [&](const auto& self, const Path& directory) -> void {
    const auto names = files->list(directory);
    const auto old = before->list(directory);
    ASSERT_TRUE(names && old);
    ASSERT_EQ(names->size(), old->size()) << directory;
    for (std::size_t n = 0; n < names->size(); ++n) {
      const auto path = directory / (*names)[n].name;
      ASSERT_EQ((*names)[n].name, (*old)[n].name);
      if ((*names)[n].is_directory) {
        self(self, path);
      } else {
        EXPECT_EQ(*read_file(*files, path), *read_file(*before, path)) << path;
      }
    }
  };
  compare_directory(compare_directory, "/db");
}

TEST_P(EstimateFixture, CopesWithANodeThatScavengesMeanwhile) {
  const auto files = prepared();
  const auto undisturbed = preview_of(*files);
  ASSERT_TRUE(undisturbed) << undisturbed.error().message;
  const auto expected = estimate_of(*(*undisturbed)->preview);
  ASSERT_TRUE(expected) << expected.error().message;

  const auto opened = preview_of(*files);
  ASSERT_TRUE(opened) << opened.error().message;
  // Every file that was opened is replaced and removed now.
  const auto result = run_scavenge(*files, "/db", fixture.run());
  ASSERT_TRUE(result) << result.error().message;
  const auto estimate = estimate_of(*(*opened)->preview);
  ASSERT_TRUE(estimate) << estimate.error().message;
  EXPECT_EQ(in_words(*estimate), in_words(*expected));
}

INSTANTIATE_TEST_SUITE_P(Cases, EstimateFixture, testing::ValuesIn(previewed_cases()), case_name);

}  // namespace
}  // namespace verger::test
