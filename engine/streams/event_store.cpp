#include "engine/streams/event_store.h"

#include <algorithm>

#include "engine/index/index_map.h"
#include "engine/streams/detail/all_reader.h"
#include "engine/streams/detail/database_state.h"

namespace verger::streams {

namespace {

/// Runs `read`, and once more when it met a record that is not where it was: a scavenge may have
/// replaced chunks between the look into the index and the look into the log.
template <class Read>
auto with_retry(const Read& read) {
  auto result = read();
  if (!result && (result.error().code == Errc::kCorruption ||
                  result.error().code == Errc::kNotFound || result.error().code == Errc::kIo)) {
    return read();
  }
  return result;
}

}  // namespace

Database::State::State(FileSystem& files_in, Clock& clock_in, Random& random_in, Log& out_in,
                       bool writable_in, std::unique_ptr<log::TransactionLog> log_in,
                       std::unique_ptr<index::Index> index_in, LogPosition committed_in)
    : files(files_in),
      clock(clock_in),
      random(random_in),
      out(out_in),
      writable(writable_in),
      log(std::move(log_in)),
      index(std::move(index_in)),
      reader(*log, *index, clock),
      committed(committed_in.value()),
      accounted(committed_in) {}

Database::State::~State() {
  if (writable) {
    // A lost chaser.chk only costs the next opening some catching up.
    if (const auto saved = log->flush_checkpoints(); !saved) {
      out.warning("checkpoints not saved at closing", {{"reason", saved.error().message}});
    }
  }
}

Result<std::unique_ptr<Database>> Database::open(FileSystem& files, const Path& directory,
                                                 DatabaseOptions options, bool commit_all,
                                                 Clock& clock, Random& random, Log& log) {
  const bool writable = options.log.access == log::Access::kWrite;
  VERGER_TRY(auto transaction_log,
             log::TransactionLog::open(files, directory, options.log, clock, random, log));
  const auto end = transaction_log->end();
  const auto committed = commit_all ? end : std::min(transaction_log->checkpoints().chaser, end);
  options.index.read_only = !writable;
  options.index.catch_up_end = committed;
  const auto index_directory =
      options.index_directory.empty() ? directory / "index" : options.index_directory;
  const auto chaser = transaction_log->checkpoints().chaser;
  const auto raise_chaser = [&]() -> Result<void> {
    if (!writable || chaser >= committed) {
      return {};
    }
    transaction_log->set_chaser(committed);
    return transaction_log->flush_checkpoints();
  };
  if (writable) {
    options.index.chaser = chaser;
    // Catching up may flush tables, and an index that reaches chaser.chk is thrown away at the next
    // opening: that one goes first. Not before an index that is to be thrown away now.
    const auto map = index::load_index_map(files, index_directory);
    if (map && map->commit_checkpoint < chaser) {
      VERGER_RETURN_IF_ERROR(raise_chaser());
    }
  }
  VERGER_TRY(auto stream_index, index::Index::open(files, index_directory, *transaction_log,
                                                   options.index, clock, random, log));
  VERGER_RETURN_IF_ERROR(raise_chaser());
  auto state =
      std::make_unique<State>(files, clock, random, log, writable, std::move(transaction_log),
                              std::move(stream_index), committed);
  if (writable) {
    state->log->set_chaser(committed);
    VERGER_RETURN_IF_ERROR(state->remember_recent());
    state->account_for_log();
  }
  return std::unique_ptr<Database>(new Database(std::move(state)));
}

Database::Database(std::unique_ptr<State> state) : state_(std::move(state)) {}
Database::~Database() = default;

log::TransactionLog& Database::transaction_log() { return *state_->log; }
const log::TransactionLog& Database::transaction_log() const { return *state_->log; }
index::Index& Database::stream_index() { return *state_->index; }
const index::Index& Database::stream_index() const { return *state_->index; }
FileSystem& Database::files() { return state_->files; }
LogPosition Database::committed() const { return state_->committed_position(); }

Result<StreamSlice> Database::read_forward(std::string_view stream, EventNumber from,
                                           std::size_t count) const {
  return with_retry([&] { return state_->reader.read_forward(stream, from, count); });
}

Result<StreamSlice> Database::read_backward(std::string_view stream, EventNumber from,
                                            std::size_t count) const {
  return with_retry([&] { return state_->reader.read_backward(stream, from, count); });
}

Result<AllSlice> Database::read_all_forward(AllPosition from, std::size_t count) const {
  return with_retry(
      [&] { return detail::read_all_forward(*state_->log, committed(), from, count); });
}

Result<AllSlice> Database::read_all_backward(AllPosition from, std::size_t count) const {
  return with_retry(
      [&] { return detail::read_all_backward(*state_->log, committed(), from, count); });
}

Result<EventNumber> Database::last_event_number(std::string_view stream) const {
  return with_retry([&] { return state_->reader.last_event_number(stream); });
}

Result<StreamMetadata> Database::metadata(std::string_view stream) const {
  return with_retry([&] { return state_->reader.metadata(stream); });
}

}  // namespace verger::streams
