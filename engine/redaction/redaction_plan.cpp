#include "engine/redaction/redaction_plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <optional>

#include "engine/base/number_from_text.h"
#include "engine/base/sqlite.h"
#include "engine/redaction/record_blanking.h"
#include "engine/scavenge/scavenge_state.h"
#include "engine/streams/stream_names.h"

namespace verger::redaction {
namespace {

/// How many entries of a stream are looked at in one go.
constexpr std::size_t kEntriesAtOnce = 4096;

class Planner {
 public:
  Planner(const streams::Database& database, const RedactionRequest& request,
          const std::function<Result<void>()>& pause)
      : database_(database), log_(database.transaction_log()), request_(request), pause_(pause) {}

  Result<RedactionPlan> run() {
    if (request_.scan_log && !request_.events.empty()) {
      VERGER_RETURN_IF_ERROR(scan_log());
    } else {
      for (const auto& event : request_.events) {
        VERGER_RETURN_IF_ERROR(take_event(event));
      }
    }
    for (const auto position : request_.positions) {
      VERGER_RETURN_IF_ERROR(take_position(position));
    }
    for (const auto& listed : request_.listed) {
      VERGER_RETURN_IF_ERROR(take_listed(listed));
    }
    for (auto& [position, record] : records_) {
      add_to_chunk(position, record);
      plan_.records.push_back(std::move(record));
    }
    return std::move(plan_);
  }

 private:
  /// nullopt: there is no record.
  Result<std::optional<log::LogRecord>> read(LogPosition position) {
    auto record = log_.read(position, buffer_);
    if (record) {
      return std::optional(*record);
    }
    if (record.error().code == Errc::kNotFound) {
      return std::optional<log::LogRecord>();
    }
    return std::move(record).error();
  }

  Result<void> take_event(const EventName& event) {
    const auto name = name_of(event.stream, event.number);
    const auto& index = database_.stream_index();
    VERGER_TRY(const auto entries, index.range(index.hash(event.stream), event.number, event.number,
                                               std::numeric_limits<std::size_t>::max()));
    bool found = false;
    for (const auto& entry : entries) {
      VERGER_TRY(const auto record, read(entry.position));
      const auto* prepare = record ? record->prepare() : nullptr;
      // A scavenge leaves entries without records, and other streams may have the same hash.
      if (prepare == nullptr || prepare->stream != event.stream) {
        continue;
      }
      found = true;
      VERGER_RETURN_IF_ERROR(take(*record, event.number, name, request_.metadata));
    }
    if (!found) {
      plan_.missing.push_back(
          fmt::format("{}: the index has no such event, or its record was scavenged away", name));
    }
    return {};
  }

  /// Events get their numbers from their own record, or from the commit of their transaction.
  Result<void> scan_log() {
    std::map<std::string, std::map<EventNumber, bool>, std::less<>> wanted;  // true: found
    for (const auto& event : request_.events) {
      wanted[event.stream][event.number] = false;
    }
    struct Part {
      std::string stream;
      std::int32_t offset = 0;
      LogPosition position;
    };
    std::map<LogPosition, std::vector<Part>> transactions;
    std::map<LogPosition, EventNumber> found;
    const auto note = [&](std::string_view stream, EventNumber number, LogPosition position) {
      const auto of_stream = wanted.find(stream);
      const auto event = of_stream->second.find(number);
      if (event != of_stream->second.end()) {
        event->second = true;
        found[position] = number;
      }
    };
    log::LogCursor cursor(log_, LogPosition(0), log_.end());
    for (std::uint64_t n = 0;; ++n) {
      if (pause_ && n % kEntriesAtOnce == 0) {
        VERGER_RETURN_IF_ERROR(pause_());
      }
      VERGER_TRY(const auto record, cursor.next());
      if (!record) {
        break;
      }
      if (const auto* prepare = record->prepare()) {
        if (!wanted.contains(prepare->stream)) {
          continue;
        }
        if (prepare->has(log::prepare_flags::kIsCommitted)) {
          note(prepare->stream, prepare->event_number(), prepare->position);
        } else if (prepare->has(log::prepare_flags::kData)) {
          transactions[prepare->transaction_position].push_back(
              {std::string(prepare->stream), prepare->transaction_offset, prepare->position});
        }
      } else if (const auto* commit = std::get_if<log::Commit>(&record->record)) {
        for (const auto& part : transactions[commit->transaction_position]) {
          note(part.stream, EventNumber(commit->first_event_number.value() + part.offset),
               part.position);
        }
        transactions.erase(commit->transaction_position);
      }
    }
    for (const auto& [position, number] : found) {
      VERGER_TRY(const auto record, read(position));
      VERGER_RETURN_IF_ERROR(
          take(*record, number, name_of(record->prepare()->stream, number), request_.metadata));
    }
    for (const auto& [stream, numbers] : wanted) {
      for (const auto& [number, is_found] : numbers) {
        if (!is_found) {
          plan_.missing.push_back(
              fmt::format("{}: the log has no such event", name_of(stream, number)));
        }
      }
    }
    return {};
  }

  Result<void> take_position(LogPosition position) {
    const auto name = fmt::format("log position {}", position);
    VERGER_TRY(const auto here, log_.has_record_at(position));
    if (!here) {
      plan_.missing.push_back(fmt::format("{}: no record starts there", name));
      return {};
    }
    VERGER_TRY(const auto record, read(position));
    const auto* prepare = record ? record->prepare() : nullptr;
    if (prepare == nullptr) {
      plan_.refused.push_back(
          fmt::format("{}: is no event, but a commit or an epoch of the log", name));
      return {};
    }
    VERGER_TRY(const auto number, number_of(*prepare));
    return take(*record, number, name, request_.metadata);
  }

  Result<void> take_listed(const ListedRedaction& listed) {
    const auto name = name_of(listed.stream, listed.number);
    VERGER_TRY(const auto here, log_.has_record_at(listed.position));
    if (!here) {
      plan_.missing.push_back(
          fmt::format("{}: no record at log position {}", name, listed.position));
      return {};
    }
    VERGER_TRY(const auto record, read(listed.position));
    const auto* prepare = record ? record->prepare() : nullptr;
    // One whose metadata was blanked as well, by another list, has another digest.
    const bool blanked = prepare != nullptr && prepare->stream == listed.stream &&
                         is_blanked(*prepare, /*metadata=*/true);
    if (prepare == nullptr ||
        (!blanked && blanked_digest(*record, listed.metadata) != listed.digest)) {
      plan_.refused.push_back(
          fmt::format("{}: the record at log position {} is not the one that was redacted: the "
                      "list belongs to another database, or to another history of this one",
                      name, listed.position));
      return {};
    }
    // It was allowed where the list was made.
    return add(*record, listed.number, listed.metadata);
  }

  /// Of an explicit transaction the commit gives the number, which the index has.
  Result<EventNumber> number_of(const log::Prepare& prepare) {
    if (prepare.has(log::prepare_flags::kIsCommitted)) {
      return prepare.event_number();
    }
    const auto& index = database_.stream_index();
    const auto hash = index.hash(prepare.stream);
    EventNumber from{0};
    for (;;) {
      VERGER_TRY(const auto entries,
                 index.range_forward(hash, from, kDeletedStream, kEntriesAtOnce));
      const auto at = std::ranges::find(entries, prepare.position, &index::IndexEntry::position);
      if (at != entries.end()) {
        return at->number;
      }
      if (entries.size() < kEntriesAtOnce) {
        return kNoStream;
      }
      from = std::max(entries.back().number, EventNumber(from.value() + 1));
    }
  }

  Result<void> take(const log::LogRecord& record, EventNumber number, std::string_view name,
                    bool metadata) {
    VERGER_TRY(const auto reason, why_not(*record.prepare(), number));
    if (!reason.empty()) {
      plan_.refused.push_back(fmt::format("{}: {}", name, reason));
      return {};
    }
    return add(record, number, metadata);
  }

  /// Empty: it may be redacted.
  Result<std::string> why_not(const log::Prepare& prepare, EventNumber number) {
    if (prepare.stream == streams::kScavengePointsStream) {
      return std::string("is a scavenge point, which every node scavenges by");
    }
    if (streams::is_metastream(prepare.stream)) {
      return why_not_metadata(prepare, number);
    }
    if (prepare.stream.starts_with('$')) {
      return fmt::format("\"{}\" is a system stream: the server works with what is in it",
                         prepare.stream);
    }
    if (prepare.has(log::prepare_flags::kStreamDelete)) {
      return std::string("is the tombstone of its stream, which holds no data of a client");
    }
    if (!prepare.has(log::prepare_flags::kData)) {
      return std::string("is a marker of a transaction, not an event");
    }
    return std::string();
  }

  Result<std::string> why_not_metadata(const log::Prepare& prepare, EventNumber number) {
    const auto original = streams::original_of(prepare.stream);
    if (original.starts_with('$')) {
      return fmt::format("\"{}\" is the metadata of a system stream", prepare.stream);
    }
    if (prepare.has(log::prepare_flags::kStreamDelete) || !prepare.has(log::prepare_flags::kData)) {
      return std::string("is no metadata event");
    }
    if (!request_.metadata_streams) {
      return fmt::format(
          "is metadata of \"{}\" (limits and access rights); older metadata events are redacted "
          "when metadata streams are allowed (--metadata-streams)",
          original);
    }
    VERGER_TRY(const auto last, database_.last_event_number(prepare.stream));
    if (number == last) {
      return fmt::format(
          "is the newest metadata of \"{}\": without it the stream has neither limits nor access "
          "rights; write new metadata first",
          original);
    }
    return std::string();
  }

  Result<void> add(const log::LogRecord& record, EventNumber number, bool metadata) {
    const auto& prepare = *record.prepare();
    const auto chunk = log_.chunk_at(prepare.position);
    PlannedRecord planned{.stream = std::string(prepare.stream),
                          .number = number,
                          .position = prepare.position,
                          .chunk_file = chunk == nullptr ? "" : chunk->path().filename().string(),
                          .data_bytes = prepare.data.size(),
                          .metadata_bytes = prepare.metadata.size(),
                          .metadata = metadata,
                          .already = is_blanked(prepare, metadata),
                          .digest = blanked_digest(record, metadata)};
    const auto [at, added] = records_.try_emplace(prepare.position, planned);
    if (!added && metadata && !at->second.metadata) {
      at->second = std::move(planned);
    }
    return {};
  }

  void add_to_chunk(LogPosition position, const PlannedRecord& record) {
    const auto chunk = log_.chunk_at(position);
    if (record.already || chunk == nullptr) {
      return;
    }
    if (plan_.chunks.empty() || plan_.chunks.back().start != chunk->start()) {
      plan_.chunks.push_back({.file = record.chunk_file,
                              .start = chunk->start(),
                              .end = chunk->end(),
                              .file_size = chunk->file_size(),
                              .active = !chunk->completed()});
    }
    auto& planned = plan_.chunks.back();
    planned.records.push_back(plan_.records.size());
    planned.bytes += record.data_bytes + (record.metadata ? record.metadata_bytes : 0);
  }

  const streams::Database& database_;
  const log::TransactionLog& log_;
  const RedactionRequest& request_;
  const std::function<Result<void>()>& pause_;
  Bytes buffer_;
  std::map<LogPosition, PlannedRecord> records_;
  RedactionPlan plan_;
};

/// Read from a copy: nothing is changed, and the file may be locked.
Result<std::string> unfinished_scavenge(FileSystem& files, const Path& index_directory) {
  const auto path = scavenge::ScavengeState::path_in(index_directory);
  VERGER_TRY(const bool there, files.exists(path));
  if (!there) {
    return std::string();
  }
  VERGER_TRY(auto state, sqlite::Database::open_snapshot(files, path));
  VERGER_TRY(const auto tables, state.query_int("SELECT COUNT(*) FROM sqlite_master WHERE "
                                                "type = 'table' AND name = 'Checkpoint'"));
  if (tables == 0) {
    return std::string();
  }
  VERGER_TRY(const auto text, state.query_text("SELECT value FROM Checkpoint WHERE key = 0"));
  if (!text) {
    return std::string();
  }
  const auto checkpoint = scavenge::decode_checkpoint(*text);
  if (checkpoint && checkpoint->stage == scavenge::Stage::kDone) {
    return std::string();
  }
  return fmt::format(
      "{}: a scavenge {}is unfinished: finish it first, with `verger-db scavenge` here or with "
      "POST /admin/scavenge on the running server, and repeat the redaction then",
      path.string(), checkpoint ? fmt::format("to point {} ", checkpoint->point.number) : "");
}

}  // namespace

std::string name_of(std::string_view stream, EventNumber number) {
  return fmt::format("{}@{}", number, stream);
}

Result<EventName> parse_event_name(std::string_view text) {
  const auto at = text.find('@');
  const auto number = number_from_text<std::int64_t>(text.substr(0, at));
  if (at == std::string_view::npos || at + 1 == text.size() || number.value_or(-1) < 0) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("'{}' names no event: give NUMBER@STREAM, such as 12@orders-7", text)};
  }
  return EventName{.stream = std::string(text.substr(at + 1)), .number = EventNumber(*number)};
}

std::size_t RedactionPlan::to_do() const {
  return static_cast<std::size_t>(std::ranges::count(records, false, &PlannedRecord::already));
}

std::uint64_t RedactionPlan::disk_need() const {
  std::uint64_t most = 0;
  for (const auto& chunk : chunks) {
    most = std::max(most, chunk.file_size);
  }
  return most;
}

bool RedactionPlan::has_active() const {
  return std::ranges::any_of(chunks, &PlannedChunk::active);
}

std::vector<ListedRedaction> RedactionPlan::to_list() const {
  std::vector<ListedRedaction> list;
  list.reserve(records.size());
  for (const auto& record : records) {
    list.push_back({.stream = record.stream,
                    .number = record.number,
                    .position = record.position,
                    .metadata = record.metadata,
                    .digest = record.digest});
  }
  return list;
}

Result<RedactionPlan> plan_redaction(FileSystem& files, const streams::Database& database,
                                     const RedactionRequest& request,
                                     const std::function<Result<void>()>& pause) {
  VERGER_TRY(auto plan, Planner(database, request, pause).run());
  VERGER_TRY(plan.leftovers, find_leftovers(files, database.transaction_log()));
  VERGER_TRY(plan.unfinished_scavenge,
             unfinished_scavenge(files, database.stream_index().directory()));
  return plan;
}

Result<void> check_plan(const RedactionPlan& plan, const RedactionConsent& consent) {
  if (!plan.refused.empty()) {
    // All that stands against it, at once.
    const bool more = !plan.missing.empty() && !consent.skip_missing;
    return Error{Errc::kRefused,
                 fmt::format("not redacted: {}{}{}; nothing was changed: leave these out",
                             fmt::join(plan.refused, "; "), more ? "; not there: " : "",
                             fmt::join(more ? plan.missing : std::vector<std::string>(), "; "))};
  }
  if (!plan.missing.empty() && !consent.skip_missing) {
    return Error{Errc::kNotFound,
                 fmt::format("{}; nothing was changed: leave these out, or give --skip-missing",
                             fmt::join(plan.missing, "; "))};
  }
  if (!plan.unfinished_scavenge.empty()) {
    return Error{Errc::kRefused, plan.unfinished_scavenge};
  }
  if (plan.has_active() && !consent.complete_chunk) {
    return Error{
        Errc::kRefused,
        fmt::format(
            "{} is still written to, and only completed chunks are redacted. In a cluster all "
            "nodes complete a chunk at the same record: start the node, append a scavenge point on "
            "the leader (a scavenge does) and repeat then. Where this node alone has the database, "
            "--complete-chunk completes it here; on one of a cluster that would lose records",
            plan.chunks.back().file)};
  }
  std::vector<std::string> names;
  for (const auto& leftover : plan.leftovers) {
    if (!leftover.of_redaction) {
      names.push_back(leftover.name);
    }
  }
  if (!names.empty() && !consent.remove_leftovers) {
    return Error{
        Errc::kRefused,
        fmt::format("files that are not live may hold the data, too: {}. A server removes them at "
                    "its next start; --remove-leftovers removes them now",
                    fmt::join(names, ", "))};
  }
  return {};
}

}  // namespace verger::redaction
