#include "tests/simulation/scavenge_property/workload.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>

#include "engine/index/index_map.h"
#include "engine/log/record.h"
#include "engine/scavenge/estimate.h"
#include "engine/scavenge/explain.h"
#include "engine/tool/program.h"
#include "tests/simulation/scavenge_property/shuffled_runner.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/run.h"

namespace verger::test {
namespace {

/// Hashers under which streams collide: all names share a few values, negative ones among them.
template <std::uint64_t kValues>
StreamHash coarse_hash(std::string_view stream) {
  return StreamHash(index::hash_stream(stream).value() % kValues * 0x2492492492492493U);
}

/// Two of each pair have the same hash by the server's hasher.
constexpr const char* kCollidingNames[] = {"c6z6l3aw6f4bpb", "cvfrgulxdhodyk", "$$cvfrgulxdhodyk",
                                           "c2ffqlptrdepdm", "cedldnj4ssvq4i"};

}  // namespace

Workload::Workload(std::uint64_t seed, WorkloadCounts& counts) : counts_(counts), random_(seed) {
  constexpr index::HashFunction kHashes[] = {&index::hash_stream, &coarse_hash<40>,
                                             &coarse_hash<7>};
  options_.chunk_size = one_in(2) ? 4096 : 8192;
  options_.max_mem_table_size = 4 + random_.below(40);
  options_.seed = random_.next();
  options_.hash = kHashes[random_.below(3)];
  monotonic_ = !one_in(3);
  zero_threshold_ = !one_in(3);
  odd_ = one_in(2);
  const auto streams = 2 + random_.below(6);
  for (std::uint64_t n = 0; n < streams; ++n) {
    names_.push_back(fmt::format("{}stream-{}", one_in(8) ? "$" : "", n));
  }
  if (one_in(2)) {
    names_.insert(names_.end(), std::begin(kCollidingNames), std::end(kCollidingNames));
  }
  builder_ = std::make_unique<DatabaseBuilder>(files_, directory_, options_);
  model_ = std::make_unique<ScavengeModel>(options_.hash, options_.chunk_size);
}

Workload::~Workload() = default;

void Workload::run() {
  const auto scavenges = 1 + random_.below(3);
  for (std::uint64_t n = 0; n < scavenges && !testing::Test::HasFailure(); ++n) {
    const auto writes = 5 + random_.below(n == 0 ? 50 : 25);
    for (std::uint64_t write = 0; write < writes; ++write) {
      write_something();
    }
    auto point = write_point();
    while (one_in(3)) {
      write_something();
    }
    if (one_in(8)) {
      point = write_point();  // the one before is skipped
    }
    for (auto more = one_in(2) ? random_.below(20) : 0; more > 0; --more) {
      write_something();
    }
    if (one_in(2)) {
      reopen();
    }
    if (one_in(4)) {
      age_files();
    }
    if (n + 1 == scavenges && one_in(4)) {
      empty_a_chunk(point);
    }
    unsafe_ = one_in(8);
    merge_ = !one_in(4);
    scavenge(point);
    if (one_in(10)) {
      for (const auto& entry : value(files_.list(directory_ / "index" / "scavenging"))) {
        value(files_.remove(directory_ / "index" / "scavenging" / entry.name));
      }
      value(files_.sync_directory(directory_ / "index" / "scavenging"));
      model_->forget();
    }
  }
}

void Workload::reopen() {
  builder_->close();
  builder_->open();
}

// --- Scavenging ---

void Workload::scavenge(const streams::ScavengePoint& point) {
  ++counts_.scavenges;
  const auto seen = readable(point);
  const auto before = input(point);
  model_->ignore_hard_deletes(unsafe_);
  const auto expected = model_->scavenge(before, point, merge_);
  if (one_in(3)) {
    preview(point, before, expected);
  }
  int disturbances = one_in(2) ? static_cast<int>(random_.below(4)) : 0;
  while (!attempt(point, disturbances == 0)) {
    disturbances = std::max(disturbances - 1, 0);
    if (testing::Test::HasFailure()) {
      return;
    }
  }
  compare(before, expected);
  if (one_in(4)) {
    reopen();
  }
  if (one_in(4)) {
    verify();
  }
  // Below a threshold above 0, records may outlive index entries that were not yet in a table.
  // Where time goes back, events that are fresh go with older ones behind them.
  if (!unsafe_ && zero_threshold_ && monotonic_ && !odd_ && !emptied_) {
    EXPECT_EQ(readable(point), seen) << "readers see something else";
  }
}

ModelInput Workload::input(const streams::ScavengePoint& point) {
  ModelInput input;
  const auto& index = builder_->database().stream_index();
  auto snapshot = snapshot_of(builder_->database());
  std::set<StreamHash> hashes;
  for (const auto& entry : snapshot.entries) {
    hashes.insert(entry.hash);
  }
  for (const auto& chunk : snapshot.chunks) {
    EXPECT_EQ(chunk.problem, "");
    for (const auto& [position, framed] : chunk.records) {
      const auto record =
          value(log::decode_record(as_bytes(framed).subspan(4, framed.size() - log::kFramingSize)));
      if (const auto* prepare = std::get_if<log::Prepare>(&record)) {
        hashes.insert(options_.hash(prepare->stream));
      }
    }
  }
  for (const auto hash : hashes) {
    const auto entries =
        value(index.range_forward(hash, EventNumber(0), kDeletedStream, 1'000'000));
    input.entries.insert(input.entries.end(), entries.begin(), entries.end());
  }
  input.in_tables = std::move(snapshot.entries);
  input.chunks = std::move(snapshot.chunks);
  const auto& log = builder_->database().transaction_log();
  input.last_of = [&, point](const std::string& stream,
                             bool by_name) -> std::optional<std::int64_t> {
    const auto is_of_stream = [&](const index::IndexEntry& entry) -> Result<bool> {
      Bytes buffer;
      if (!by_name && entry.position < point.position) {
        return true;
      }
      const auto record = log.read(entry.position, buffer);
      return record && record->prepare()->stream == stream;
    };
    const auto entry = value(index.latest_before(index.hash(stream), point.position, is_of_stream));
    return entry ? std::optional(entry->number.value()) : std::nullopt;
  };
  return input;
}

void Workload::preview(const streams::ScavengePoint& point, const ModelInput& before,
                       const ModelOutcome& expected) {
  ++counts_.previews;
  auto& database = builder_->database();
  MemoryFileSystem scratch;
  value(scratch.make_directories("/scratch"));
  scavenge::ScavengeOptions options;
  options.merge_chunks = merge_;
  options.unsafe_ignore_hard_delete = unsafe_;
  options.state.page_size = 1024;
  const scavenge::ScavengeParts parts{database.transaction_log(),
                                      database.stream_index(),
                                      files_,
                                      builder_->clock(),
                                      random_,
                                      null_log()};
  const auto opened = value(scavenge::Preview::open(parts, {scratch, "/scratch"}, options));
  opened->choose(point);
  while (value(opened->step({.units = 1000})).kind != StepOutcome::Kind::kDone) {
  }
  scavenge::EstimateJob job(*opened, 3);
  while (value(job.step({.units = 1000})).kind != StepOutcome::Kind::kDone) {
  }
  const auto& estimate = job.estimate();
  const std::set<index::IndexEntry> keeps(expected.entries.begin(), expected.entries.end());
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> layout;
  for (const auto& chunk : before.chunks) {
    layout.emplace_back(chunk.start, chunk.end);
    for (const auto& [position, framed] : chunk.records) {
      const bool goes = !expected.records.contains(position);
      records += goes ? 1 : 0;
      bytes += goes ? framed.size() : 0;
    }
  }
  EXPECT_EQ(estimate.removed, (scavenge::Volume{records, bytes}));
  const auto entries = std::ranges::count_if(
      before.in_tables, [&](const auto& entry) { return !keeps.contains(entry); });
  EXPECT_EQ(estimate.entries_removed, static_cast<std::uint64_t>(entries));
  for (const auto& merge : estimate.merges) {
    const auto first = std::ranges::find(layout, merge.start, &std::pair<int, int>::first);
    const auto last = std::ranges::find(layout, merge.end, &std::pair<int, int>::second);
    ASSERT_TRUE(first != layout.end() && last != layout.end());
    first->second = merge.end;
    layout.erase(first + 1, last + 1);
  }
  EXPECT_EQ(layout, expected.layout);

  scavenge::Explainer explainer(*opened);
  for (const auto& chunk : before.chunks) {
    for (const auto& record : chunk.records) {
      const auto position = LogPosition(record.first);
      const auto explained = value(explainer.record(position));
      EXPECT_EQ(explained.stays, expected.records.contains(position.value()))
          << explained.stream << " at " << position.value() << ": " << explained.reason;
      EXPECT_FALSE(explained.reason.empty());
      EXPECT_EQ(explained.missing.empty(), !explained.stays) << explained.reason;
      for (const auto& entry : before.in_tables) {
        if (entry.position == position) {
          EXPECT_EQ(explained.entry_stays, keeps.contains(entry))
              << explained.stream << "@" << entry.number.value() << " at " << position.value();
        }
      }
    }
  }
}

bool Workload::attempt(const streams::ScavengePoint& point, bool undisturbed) {
  scavenge::ScavengeOptions options;
  options.merge_chunks = merge_;
  options.unsafe_ignore_hard_delete = unsafe_;
  options.threads = 1 + static_cast<int>(random_.below(4));
  options.throttle_percent = options.threads == 1 && one_in(2) ? 40 : 100;
  options.accumulation_batch = 1 + random_.below(16);
  options.calculation_batch = 1 + random_.below(8);
  options.state.page_size = 1024;
  options.state.names_cache = 2 + random_.below(16);
  options.limits_cache = 1 + random_.below(16);
  std::uint64_t stop_at_step = 0;
  bool crashed = false;
  if (!undisturbed) {
    switch (random_.below(3)) {
      case 0:
        stop_at_step = 1 + random_.below(60);
        break;
      case 1:
        options.stop_after = {static_cast<scavenge::Stage>(1 + random_.below(6)), random_.below(4)};
        break;
      default: {
        const auto nth = random_.below(one_in(2) ? 60 : 400);
        const auto kind = random_.below(3);
        const auto torn = random_.next();
        files_.reset_count();
        files_.set_fault_hook([this, nth, kind, torn,
                               &crashed](const DiskOperation& operation) -> std::optional<Error> {
          if (crashed || operation.number != nth) {
            return std::nullopt;
          }
          crashed = true;
          kind == 0   ? files_.kill_process()
          : kind == 1 ? files_.cut_power()
                      : files_.cut_power(torn);
          return Error{Errc::kIo, "the power is gone"};
        });
      }
    }
  }
  const auto done = run_job(point, options, stop_at_step);
  files_.set_fault_hook({});
  if (crashed) {
    ++counts_.crashes;
    reopen();
    // Even the last write of all may have been made when the power went.
    auto state = value(
        scavenge::ScavengeState::open(files_, directory_ / "index", options_.hash, options.state));
    const auto checkpoint = value(state->checkpoint());
    return checkpoint && checkpoint->stage == scavenge::Stage::kDone &&
           checkpoint->point.number == point.number;
  }
  if (!done && done.error().code == Errc::kCancelled) {
    ++counts_.stops;
    if (one_in(3)) {
      reopen();
    }
    return false;
  }
  EXPECT_TRUE(done) << done.error().message;
  return true;
}

Result<void> Workload::run_job(const streams::ScavengePoint& point,
                               scavenge::ScavengeOptions options, std::uint64_t stop_at_step) {
  auto& database = builder_->database();
  VERGER_TRY(auto state, scavenge::ScavengeState::open(files_, directory_ / "index", options_.hash,
                                                       options.state));
  ShuffledRunner runner(random_);
  scavenge::ScavengeEvents events;
  scavenge::ScavengeJob job(
      scavenge::ScavengeParts{database.transaction_log(), database.stream_index(), files_,
                              builder_->clock(), random_, null_log()},
      std::move(state), point, options, events, runner);
  const auto units = static_cast<std::uint32_t>(1 + random_.below(one_in(2) ? 40 : 4000));
  for (std::uint64_t step = 1;; ++step) {
    VERGER_TRY(const auto outcome, job.step({.units = units}));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      const auto& progress = job.progress();
      counts_.chunks_executed += progress.chunks_executed;
      counts_.records_discarded += progress.records_discarded;
      counts_.entries_discarded += progress.entries_discarded;
      counts_.groups_merged += static_cast<int>(progress.groups_merged);
      counts_.collisions += job.state().has_collisions() ? 1 : 0;
      return {};
    }
    if (step == stop_at_step) {
      job.request_stop();
    }
  }
}

std::string Workload::readable(const streams::ScavengePoint& point) {
  streams::DigestJob job(builder_->database(), point.position, point.effective_now);
  while (value(job.step({.units = 100'000})).kind != StepOutcome::Kind::kDone) {
  }
  return to_hex(job.digest().readable);
}

void Workload::verify() {
  builder_->close();
  std::ostringstream out;
  std::ostringstream err;
  tool::ToolContext context{files_, builder_->clock(), random_, null_log(), out, err};
  const char* arguments[] = {"verger-db", "verify", "/db", "--threads", "1"};
  // With hashes of its own verify would not know the streams.
  if (options_.hash == &index::hash_stream) {
    EXPECT_EQ(tool::run_program(5, arguments, context), tool::kExitDone) << out.str() << err.str();
  }
  builder_->open();
}

// --- Comparing ---

void Workload::compare(const ModelInput& before, const ModelOutcome& expected) {
  const auto after = snapshot_of(builder_->database());
  std::map<std::int64_t, std::string> records;
  std::vector<std::pair<std::int32_t, std::int32_t>> layout;
  for (const auto& chunk : after.chunks) {
    EXPECT_EQ(chunk.problem, "");
    layout.emplace_back(chunk.start, chunk.end);
    records.insert(chunk.records.begin(), chunk.records.end());
  }
  EXPECT_EQ(layout, expected.layout);
  for (const auto& chunk : before.chunks) {
    for (const auto& [position, framed] : chunk.records) {
      const auto ours = records.find(position);
      EXPECT_EQ(ours != records.end(), expected.records.contains(position))
          << "the record at " << position;
      if (ours != records.end()) {
        EXPECT_EQ(ours->second, framed) << "the record at " << position;
      }
    }
  }
  EXPECT_EQ(records.size(), expected.records.size());
  // Entries that were only in memory may have reached a table by now, thinned or not.
  const std::set<index::IndexEntry> keeps(expected.entries.begin(), expected.entries.end());
  const std::set<index::IndexEntry> had(before.entries.begin(), before.entries.end());
  const std::set<index::IndexEntry> has(after.entries.begin(), after.entries.end());
  for (const auto& entry : before.in_tables) {
    EXPECT_EQ(has.contains(entry), keeps.contains(entry)) << fmt::format(
        "entry {:016x} {} {}", entry.hash.value(), entry.number.value(), entry.position.value());
  }
  EXPECT_TRUE(std::ranges::includes(had, has)) << "there are entries that were not there before";
  builder_->close();
  auto state = read_state(files_, directory_ / "index");
  builder_->open();
  EXPECT_EQ(state["Checkpoint"].size(), 1U);
  EXPECT_NE(state["Checkpoint"].front().find("\"Done\""), std::string::npos);
  state.erase("Checkpoint");
  state.erase("SchemaVersion");
  EXPECT_EQ(state, model_->rows());
}

}  // namespace verger::test
