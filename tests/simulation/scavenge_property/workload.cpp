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

const Path kDirectory = "/db";

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
  builder_ = std::make_unique<DatabaseBuilder>(files_, kDirectory, options_);
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
      for (const auto& entry : value(files_.list(kDirectory / "index" / "scavenging"))) {
        value(files_.remove(kDirectory / "index" / "scavenging" / entry.name));
      }
      value(files_.sync_directory(kDirectory / "index" / "scavenging"));
      model_->forget();
    }
  }
}

void Workload::reopen() {
  builder_->close();
  builder_->open();
}

void Workload::age_files() {
  builder_->close();
  const auto writer =
      load_le<std::int64_t>(value(read_file(files_, kDirectory / "writer.chk")).data());
  for (const auto& entry : value(files_.list(kDirectory))) {
    const auto name = log::parse_chunk_file_name(entry.name);
    if (name && (name->start.value() + 1) * std::int64_t{options_.chunk_size} <= writer &&
        one_in(2)) {
      age_chunk(kDirectory / entry.name);
    }
  }
  for (const auto& line : value(index::load_index_map(files_, kDirectory / "index")).tables) {
    if (one_in(2)) {
      age_table(kDirectory / "index" / line.file);
    }
  }
  builder_->open();
}

void Workload::age_chunk(const Path& path) {
  const auto chunk = value(log::Chunk::open_completed(files_, path));
  auto header = chunk->header();
  auto footer = *chunk->footer();
  const bool unaligned = one_in(2);
  header.min_compatible_version = unaligned ? 2 : 3;
  header.version = 0;
  const auto map = value(chunk->posmap());
  footer.map_12_bytes = one_in(2);
  footer.map_size = static_cast<std::int32_t>(map.size() * (footer.map_12_bytes ? 12 : 8));
  Bytes bytes;
  append_bytes(bytes, log::encode_chunk_header(header));
  Bytes data(static_cast<std::size_t>(chunk->data_size()));
  value(chunk->read_raw(log::kChunkHeaderSize, data));
  append_bytes(bytes, data);
  for (const auto& entry : map) {
    append_le(bytes, entry.actual);
    if (footer.map_12_bytes) {
      append_le(bytes, entry.local);
    } else {
      append_le(bytes, static_cast<std::int32_t>(entry.local));
    }
  }
  if (!unaligned) {
    bytes.resize((bytes.size() + log::kChunkFooterSize + 4095) / 4096 * 4096 -
                 log::kChunkFooterSize);
  }
  append_bytes(bytes, log::encode_chunk_footer(footer));
  const auto sum = md5(ByteView(bytes).first(bytes.size() - sizeof(Md5Digest)));
  std::ranges::copy(sum, bytes.end() - sizeof(Md5Digest));
  value(files_.set_read_only(path, false));
  value(write_file_durably(files_, path, bytes));
}

void Workload::age_table(const Path& path) {
  std::vector<index::IndexEntry> entries;
  {
    index::PTableScanner scanner(value(index::PTable::open(files_, path, 16)));
    while (const auto* entry = value(scanner.next())) {
      entries.push_back(*entry);
    }
  }
  // Version 2 has 32 bits for numbers.
  const bool narrow = one_in(2) && std::ranges::all_of(entries, [](const auto& entry) {
                        return entry.number.value() <= std::numeric_limits<std::int32_t>::max();
                      });
  Bytes bytes(128);
  bytes[0] = std::byte{1};
  bytes[1] = narrow ? std::byte{2} : std::byte{3};
  for (const auto& entry : entries) {
    if (narrow) {
      append_le(bytes, static_cast<std::int32_t>(entry.number.value()));
    } else {
      append_le(bytes, entry.number.value());
    }
    append_le(bytes, entry.hash.value());
    append_le(bytes, entry.position.value());
  }
  append_bytes(bytes, md5(bytes));
  value(write_file_durably(files_, path, bytes));
}

void Workload::empty_a_chunk(const streams::ScavengePoint& point) {
  std::vector<std::shared_ptr<const log::Chunk>> candidates;
  for (const auto& chunk : builder_->database().transaction_log().chunks()) {
    bool needed = chunk->end_position() > point.position;
    auto scanner = value(log::ChunkScanner::open(chunk, chunk->start_position()));
    while (const auto record = value(scanner.next())) {
      const auto* prepare = record->prepare();
      // Epochs are a chain; the last point is looked for.
      needed = needed || std::holds_alternative<log::SystemRecord>(record->record) ||
               (prepare != nullptr && prepare->stream == "$scavengePoints");
    }
    if (!needed) {
      candidates.push_back(chunk);
    }
  }
  if (candidates.empty()) {
    return;
  }
  const auto chosen = candidates[random_.below(candidates.size())];
  auto header = chosen->header();
  header.scavenged = true;
  header.min_compatible_version = 3;
  header.version = 4;
  const auto old = chosen->path();
  const auto path = kDirectory / log::chunk_file_name(header.start, chosen->version() + 1);
  candidates.clear();
  builder_->close();
  auto writer = value(log::ChunkWriter::create(files_, kDirectory, "emptied.tmp", header));
  value(files_.rename(value(writer.finish()).path, path));
  value(files_.set_read_only(old, false));
  value(files_.remove(old));
  value(files_.sync_directory(kDirectory));
  emptied_ = true;
  builder_->open();
}

// --- Writing ---

void Workload::write_something() {
  const auto& stream = names_[random_.below(names_.size())];
  const auto base = stream.starts_with("$$") ? stream.substr(2) : stream;
  if (odd_ && one_in(3)) {
    write_odd(base);
    return;
  }
  if (tombstoned_.contains(base)) {
    return;
  }
  const bool soft = soft_deleted_.contains(base);
  switch (random_.below(24)) {
    case 0:
    case 1:
    case 2:
    case 3:
      write_metadata(base);
      return;
    case 4:
      if (!soft && one_in(2)) {
        builder_->write("$$" + base, 1);  // counts as metadata that says nothing
      }
      return;
    case 5:
      if (!soft && value(builder_->database().last_event_number(base)) >= EventNumber(0)) {
        builder_->soft_delete(base);
        soft_deleted_.insert(base);
      }
      return;
    case 6:
      if (one_in(2)) {
        builder_->hard_delete(base);
        tombstoned_.insert(base);
      }
      return;
    case 7:
    case 8:
      if (!soft) {
        builder_->transaction(base, 1 + static_cast<int>(random_.below(3)), one_in(4));
      }
      return;
    case 9:
      builder_->clock().advance_seconds(static_cast<std::int64_t>(random_.below(900)));
      return;
    case 10:
      if (!monotonic_) {
        builder_->clock().advance_seconds(-static_cast<std::int64_t>(random_.below(200)));
      }
      return;
    case 11:
      if (one_in(4)) {
        reopen();
      }
      return;
    default:
      builder_->write(base, 1 + static_cast<int>(random_.below(3)), 16 + random_.below(250));
      soft_deleted_.erase(base);
  }
}

void Workload::write_metadata(const std::string& stream) {
  builder_->metadata(stream, metadata_text());
}

std::string Workload::metadata_text() {
  const auto small = random_.below(6);
  const auto age = 1 + random_.below(900);
  const std::string texts[] = {
      fmt::format(R"({{"$maxCount":{}}})", small),
      fmt::format(R"({{"$maxAge":{}}})", age),
      fmt::format(R"({{"$maxAge":{},"$maxCount":{}}})", age, small + 1),
      fmt::format(R"({{"$tb":{}}})", small * 2),
      fmt::format(R"({{"$tb":{},"$maxAge":{}}})", small, age),
      fmt::format(R"({{"$maxCount":{},"$tb":{},"$acl":{{"$r":"$admins"}}}})", small + 2, small),
      R"({"$acl":{"$r":["a","b"],"$w":"$ops"}})",
      R"({"$acl":{"unheard":"of"},"$maxCount":1})",
      R"({"$maxCount":"2","$tb":1})",
      R"({"$maxAge":1000000000000,"$maxCount":1})",
      R"({"$tb":-1,"unknown":{"$maxCount":1}})",
      "{}",
      "not json",
  };
  // Half of the time one of the first: limits that limit.
  return texts[one_in(2) ? random_.below(6) : random_.below(std::size(texts))];
}

LogPosition Workload::append(const std::string& stream, std::uint16_t flags, std::int64_t number,
                             std::string_view data, LogPosition transaction, std::int32_t offset) {
  log::Prepare prepare;
  prepare.version = one_in(2) ? 0 : 1;
  prepare.position = kNoPosition;
  prepare.flags = flags;
  prepare.transaction_position = transaction;
  prepare.transaction_offset = offset;
  prepare.expected_version = number - 1;
  prepare.stream = stream;
  prepare.event_id = random_.uuid();
  prepare.correlation_id = random_.uuid();
  prepare.timestamp = builder_->clock().now();
  prepare.type = "odd";
  prepare.data = as_bytes(data);
  return value(builder_->database().transaction_log().append(std::span(&prepare, 1))).front();
}

void Workload::write_odd(const std::string& stream) {
  namespace flags = log::prepare_flags;
  constexpr std::uint16_t kAlone =
      flags::kTransactionBegin | flags::kTransactionEnd | flags::kIsCommitted;
  constexpr std::uint16_t kUnknown = 0x1010;
  auto& database = builder_->database();
  auto& log = database.transaction_log();
  const auto current = [&](const std::string& name) {
    return tombstoned_.contains(stream) ? std::int64_t{7}
                                        : value(database.last_event_number(name)).value();
  };
  const auto near = [&](std::int64_t number) {
    return std::max<std::int64_t>(0, number - 2 + static_cast<std::int64_t>(random_.below(6)));
  };
  const auto meta = "$$" + stream;
  const auto commit = [&](LogPosition transaction, std::int64_t number) {
    log::Commit record;
    record.version = one_in(2) ? 0 : 1;
    record.transaction_position = transaction;
    record.first_event_number = EventNumber(number);
    record.correlation_id = random_.uuid();
    record.timestamp = builder_->clock().now();
    value(log.append(record));
  };
  const auto text = metadata_text();
  switch (random_.below(12)) {
    case 0:
    case 1:
    case 2:
      append(stream, flags::kData | kAlone | (one_in(3) ? kUnknown : 0), near(current(stream)),
             std::string(random_.below(200), 'o'));
      break;
    case 3:
      append(stream, kAlone, std::max<std::int64_t>(0, current(stream) + 1), "", kNoPosition, -1);
      break;
    case 4: {
      const auto number = current(stream) + 1;
      commit(append(stream, flags::kData | flags::kTransactionBegin | flags::kTransactionEnd,
                    number, "old"),
             number);
      break;
    }
    case 5:
    case 6:
      append(meta, flags::kData | kAlone | (one_in(2) ? flags::kIsJson : 0), near(current(meta)),
             one_in(4) ? R"({"$tb":2147483647})" : text);
      break;
    case 7: {
      const auto number = std::max<std::int64_t>(0, current(meta) + 1);
      commit(append(meta, flags::kData | flags::kTransactionBegin | flags::kTransactionEnd, number,
                    text),
             number);
      break;
    }
    case 8:
      append("$$" + meta, flags::kData | kAlone, near(current("$$" + meta)), text);
      break;
    case 9:
      if (one_in(3)) {
        append(stream, flags::kStreamDelete | kAlone, kDeletedStream.value(), "");
        tombstoned_.insert(stream);
      }
      break;
    case 10:
      if (one_in(3)) {
        const auto number = current(stream) + 1;
        commit(
            append(stream, flags::kStreamDelete | flags::kTransactionBegin | flags::kTransactionEnd,
                   number, ""),
            number);
        tombstoned_.insert(stream);
      }
      break;
    default: {
      const auto last = log.epochs().last();
      value(log.append_epoch(EpochNumber(last ? last->number.value() + 1 : 0), random_.uuid()));
    }
  }
  value(log.flush());
  value(database.commit_up_to(log.end()));
  builder_->clock().advance_seconds(1);
}

streams::ScavengePoint Workload::write_point() {
  const std::int32_t thresholds[] = {-1, 1, 2, 5, 20};
  return builder_->point(zero_threshold_ ? 0 : thresholds[random_.below(5)]);
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
        scavenge::ScavengeState::open(files_, kDirectory / "index", options_.hash, options.state));
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
  VERGER_TRY(auto state, scavenge::ScavengeState::open(files_, kDirectory / "index", options_.hash,
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
  auto state = read_state(files_, kDirectory / "index");
  builder_->open();
  EXPECT_EQ(state["Checkpoint"].size(), 1U);
  EXPECT_NE(state["Checkpoint"].front().find("\"Done\""), std::string::npos);
  state.erase("Checkpoint");
  state.erase("SchemaVersion");
  EXPECT_EQ(state, model_->rows());
}

}  // namespace verger::test
