#include "tests/support/database/database_builder.h"

#include <stdexcept>

#include "tests/support/results.h"

namespace verger::test {

namespace {

namespace flags = log::prepare_flags;

}  // namespace

streams::DatabaseOptions database_options(const BuilderOptions& options, log::Access access) {
  streams::DatabaseOptions result;
  result.log.access = access;
  result.log.chunk_size = options.chunk_size;
  result.log.create = access == log::Access::kWrite;
  result.log.assume_stopped = true;
  result.index.read_only = access == log::Access::kReadOnly;
  result.index.max_mem_table_size = options.max_mem_table_size;
  result.index.stream_existence_filter_size = 10'000;
  result.index.hash = options.hash;
  return result;
}

DatabaseBuilder::DatabaseBuilder(FileSystem& files, Path directory, BuilderOptions options)
    : files_(files),
      directory_(std::move(directory)),
      options_(options),
      clock_(options.start),
      random_(options.seed) {
  value(files_.make_directories(directory_));
  value(files_.sync_directory(directory_.parent_path()));
  open();
}

DatabaseBuilder::~DatabaseBuilder() = default;

void DatabaseBuilder::close() { database_.reset(); }

void DatabaseBuilder::open() {
  database_ = value(streams::Database::open(files_, directory_,
                                            database_options(options_, log::Access::kWrite),
                                            /*commit_all=*/true, clock_, random_, null_log()));
}

streams::WriteOutcome DatabaseBuilder::committed(streams::WriteResult result) {
  if (!result) {
    throw std::runtime_error(result.error().error.message);
  }
  value(database_->commit_up_to(result->end));
  clock_.advance_seconds(options_.seconds_per_write);
  return *result;
}

streams::NewEvent DatabaseBuilder::event(std::size_t size) {
  streams::NewEvent event;
  event.id = random_.uuid();
  event.type = "e";
  auto text = fmt::format("{{\"n\":{}", random_.below(1'000'000));
  if (text.size() + 10 < size) {
    text += fmt::format(",\"p\":\"{}\"", std::string(size - text.size() - 8, 'x'));
  }
  text += "}";
  const auto bytes = as_bytes(text);
  event.data.assign(bytes.begin(), bytes.end());
  return event;
}

streams::WriteOutcome DatabaseBuilder::write(std::string_view stream, int count, std::size_t size) {
  std::vector<streams::NewEvent> events;
  for (int i = 0; i < count; ++i) {
    events.push_back(event(size));
  }
  return write(stream, std::move(events));
}

streams::WriteOutcome DatabaseBuilder::write(std::string_view stream,
                                             std::vector<streams::NewEvent> events) {
  return committed(database_->append(stream, streams::kExpectAny, std::move(events)));
}

streams::WriteOutcome DatabaseBuilder::metadata(std::string_view stream, std::string_view json) {
  auto event = this->event();
  const auto bytes = as_bytes(json);
  event.data.assign(bytes.begin(), bytes.end());
  return committed(database_->set_metadata(stream, streams::kExpectAny, std::move(event)));
}

streams::WriteOutcome DatabaseBuilder::soft_delete(std::string_view stream) {
  return committed(database_->soft_delete(stream, streams::kExpectAny));
}

streams::WriteOutcome DatabaseBuilder::hard_delete(std::string_view stream) {
  return committed(database_->hard_delete(stream, streams::kExpectAny));
}

void DatabaseBuilder::write_number_0(std::string_view stream, const streams::NewEvent& event) {
  auto& log = database_->transaction_log();
  log::Prepare prepare;
  prepare.position = kNoPosition;
  prepare.transaction_position = kNoPosition;
  prepare.flags =
      flags::kData | flags::kTransactionBegin | flags::kTransactionEnd | flags::kIsCommitted;
  prepare.expected_version = -1;
  prepare.stream = stream;
  prepare.event_id = event.id;
  prepare.correlation_id = event.id;
  prepare.timestamp = kTestTime;
  prepare.type = "e";
  prepare.data = event.data;
  value(log.append(std::span(&prepare, 1)));
  value(log.flush());
  value(database_->commit_up_to(log.end()));
}

streams::ScavengePoint DatabaseBuilder::point(std::int32_t threshold) {
  const auto now = clock_.now();
  const auto outcome = committed(database_->append_scavenge_point(streams::kExpectAny, threshold));
  value(database_->commit_up_to(database_->transaction_log().end()));  // with the chunk's end
  return {outcome.position, outcome.first, now, threshold};
}

void DatabaseBuilder::transaction(std::string_view stream, int count, bool open) {
  auto& log = database_->transaction_log();
  const auto current = value(database_->last_event_number(stream));
  const auto append = [&](std::uint16_t bits, LogPosition transaction, std::int32_t offset,
                          std::int64_t expected, const streams::NewEvent& event) {
    log::Prepare prepare;
    prepare.position = kNoPosition;
    prepare.flags = bits;
    prepare.transaction_position = transaction;
    prepare.transaction_offset = offset;
    prepare.expected_version = expected;
    prepare.stream = stream;
    prepare.event_id = event.id;
    prepare.correlation_id = random_.uuid();
    prepare.timestamp = clock_.now();
    prepare.type = event.type;
    prepare.data = event.data;
    return value(log.append(std::span(&prepare, 1))).front();
  };
  streams::NewEvent marker;
  marker.id = random_.uuid();
  const auto begin = append(flags::kTransactionBegin, kNoPosition, -1, streams::kExpectAny, marker);
  for (int i = 0; i < count; ++i) {
    append(flags::kData | flags::kIsJson, begin, i, streams::kExpectAny, event());
  }
  if (!open) {
    marker.id = random_.uuid();
    append(flags::kTransactionEnd, begin, -1, streams::kExpectAny, marker);
    log::Commit commit;
    commit.transaction_position = begin;
    commit.first_event_number = EventNumber(current.value() + 1);
    commit.correlation_id = random_.uuid();
    commit.timestamp = clock_.now();
    value(log.append(commit));
  }
  value(log.flush());
  value(database_->commit_up_to(log.end()));
  clock_.advance_seconds(options_.seconds_per_write);
}

void leave_killed_behind_point(FileSystem& files, const Path& directory, LogPosition record_end) {
  Bytes bytes;
  append_le(bytes, record_end.value());
  for (const auto* checkpoint : {"writer.chk", "chaser.chk"}) {
    value(write_file_durably(files, directory / checkpoint, bytes));
  }
  value(files.remove(directory / "chunk-000001.000000"));
}

}  // namespace verger::test
