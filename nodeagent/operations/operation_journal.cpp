#include "nodeagent/operations/operation_journal.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/sqlite.h"
#include "nodeagent/api/member_names.h"

namespace verger::agent {
namespace {

constexpr std::int64_t kSchemaVersion = 1;

constexpr std::string_view kSchema = R"(
  CREATE TABLE operation (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL,
    step TEXT NOT NULL,
    controller_epoch INTEGER NOT NULL,
    kind TEXT NOT NULL,
    parameters TEXT NOT NULL,
    expected_instance_id TEXT NOT NULL,
    state TEXT NOT NULL,
    error_code TEXT NOT NULL,
    error TEXT NOT NULL,
    result TEXT NOT NULL,
    memory TEXT NOT NULL,
    accepted_at TEXT NOT NULL,
    finished_at TEXT NOT NULL
  ) STRICT;
  CREATE INDEX operation_state ON operation (state, sequence);
  CREATE TABLE controller (
    key INTEGER PRIMARY KEY CHECK (key = 0),
    highest_epoch INTEGER NOT NULL
  ) STRICT;
  INSERT INTO controller (key, highest_epoch) VALUES (0, 0);
  PRAGMA user_version = 1;
)";

constexpr std::string_view kColumns =
    "id, run, step, controller_epoch, kind, parameters, expected_instance_id, state, error_code, "
    "error, result, memory, accepted_at, finished_at";

Result<OperationRecord> read_row(const sqlite::Statement& row) {
  OperationRecord record;
  auto& request = record.request;
  auto& status = record.status;
  request.id = row.column_text(0);
  request.run = row.column_text(1);
  request.step = row.column_text(2);
  request.controller_epoch = row.column_int(3);
  request.kind = row.column_text(4);
  // Rows that version 0.1 wrote have other names.
  request.parameters_json = api::in_camel_case(std::string(row.column_text(5)));
  request.expected_instance_id = row.column_text(6);
  status.id = request.id;
  status.kind = request.kind;
  VERGER_TRY(status.state, api::parse_operation_state(row.column_text(7)));
  status.error_code = row.column_text(8);
  status.error = row.column_text(9);
  status.result_json = api::in_camel_case(std::string(row.column_text(10)));
  record.memory_json = row.column_text(11);
  status.accepted_at = row.column_text(12);
  status.finished_at = row.column_text(13);
  return record;
}

Result<std::vector<OperationRecord>> read_rows(sqlite::Statement statement) {
  std::vector<OperationRecord> records;
  while (true) {
    VERGER_TRY(const bool found, statement.step());
    if (!found) {
      return records;
    }
    VERGER_TRY(auto record, read_row(statement));
    records.push_back(std::move(record));
  }
}

class SqliteOperationJournal final : public OperationJournal {
 public:
  SqliteOperationJournal(sqlite::Database database, Clock& clock, std::int64_t highest_epoch,
                         const OperationRetention& retention)
      : database_(std::move(database)),
        clock_(clock),
        highest_epoch_(highest_epoch),
        retention_(retention) {}
  /// Removes what `retention` does not keep.
  Result<void> prune();
  Result<Accepted> accept(const api::OperationRequest& request) override;
  Result<std::optional<OperationRecord>> find(const std::string& id) override;
  Result<void> update(const OperationRecord& record) override;
  Result<std::vector<OperationRecord>> unfinished() override;
  Result<std::vector<OperationRecord>> newest_ended(int count) override;
  [[nodiscard]] std::int64_t highest_epoch() const override { return highest_epoch_; }
  Result<void> raise_epoch(std::int64_t epoch) override;

 private:
  sqlite::Database database_;
  Clock& clock_;
  std::int64_t highest_epoch_ = 0;
  OperationRetention retention_;
};

}  // namespace

bool same_request(const api::OperationRequest& a, const api::OperationRequest& b) {
  return a.run == b.run && a.step == b.step && a.kind == b.kind &&
         a.parameters_json == b.parameters_json;
}

Result<std::unique_ptr<OperationJournal>> OperationJournal::open(
    FileSystem& files, const Path& path, Clock& clock, const OperationRetention& retention) {
  VERGER_TRY(auto database, sqlite::Database::open(files, path));
  VERGER_TRY(const auto version, database.query_int("PRAGMA user_version"));
  if (version > kSchemaVersion) {
    return Error{Errc::kUnsupported,
                 fmt::format("{}: schema version {} is newer than this agent knows ({}); use the "
                             "newer agent again",
                             path.string(), version, kSchemaVersion)};
  }
  if (version == 0) {
    VERGER_TRY(auto transaction, sqlite::Transaction::begin(database));
    VERGER_RETURN_IF_ERROR(database.execute(kSchema));
    VERGER_RETURN_IF_ERROR(transaction.commit());
  }
  VERGER_TRY(const auto epoch, database.query_int("SELECT highest_epoch FROM controller"));
  auto journal =
      std::make_unique<SqliteOperationJournal>(std::move(database), clock, epoch, retention);
  static_cast<void>(journal->prune());  // a full disk must not keep the agent from its work
  return journal;
}

Result<void> SqliteOperationJournal::prune() {
  const auto before = [this](std::chrono::days age) {
    return format_ticks(
        Ticks(clock_.now().value() -
              std::chrono::duration_cast<std::chrono::seconds>(age).count() * kTicksPerSecond));
  };
  VERGER_TRY(auto remove, database_.prepare_to_keep(R"(
    WITH ended AS (
      SELECT sequence, max(accepted_at, finished_at) AS at,
             row_number() OVER (ORDER BY sequence DESC) AS place
      FROM operation WHERE state IN ('done', 'failed', 'cancelled'))
    DELETE FROM operation WHERE sequence IN (
      SELECT sequence FROM ended WHERE (place > ? AND at < ?) OR (place > ? AND at < ?)))"));
  remove.bind(1, retention_.kept)
      .bind(2, std::string_view(before(retention_.age)))
      .bind(3, retention_.count)
      .bind(4, std::string_view(before(retention_.settled)));
  return remove.run();
}

Result<OperationJournal::Accepted> SqliteOperationJournal::accept(
    const api::OperationRequest& request) {
  VERGER_TRY(auto known, find(request.id));
  if (known) {
    if (!same_request(known->request, request)) {
      return Error{Errc::kConflict,
                   fmt::format("operation {} is known with another content (kind {}, step {}); use "
                               "a new id",
                               request.id, known->request.kind, known->request.step)};
    }
    return Accepted{.record = std::move(*known), .is_new = false};
  }
  static_cast<void>(prune());  // again at the next one
  OperationRecord record;
  record.request = request;
  record.status.id = request.id;
  record.status.kind = request.kind;
  record.status.accepted_at = format_ticks(clock_.now());
  static const auto kInsert =
      fmt::format("INSERT INTO operation ({}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", kColumns);
  VERGER_TRY(auto insert, database_.prepare_to_keep(kInsert));
  insert.bind(1, std::string_view(request.id))
      .bind(2, std::string_view(request.run))
      .bind(3, std::string_view(request.step))
      .bind(4, request.controller_epoch)
      .bind(5, std::string_view(request.kind))
      .bind(6, std::string_view(request.parameters_json))
      .bind(7, std::string_view(request.expected_instance_id))
      .bind(8, api::to_string(record.status.state))
      .bind(9, std::string_view(record.status.error_code))
      .bind(10, std::string_view(record.status.error))
      .bind(11, std::string_view(record.status.result_json))
      .bind(12, std::string_view(record.memory_json))
      .bind(13, std::string_view(record.status.accepted_at))
      .bind(14, std::string_view(record.status.finished_at));
  VERGER_RETURN_IF_ERROR(insert.run());
  return Accepted{.record = std::move(record), .is_new = true};
}

Result<std::optional<OperationRecord>> SqliteOperationJournal::find(const std::string& id) {
  static const auto kSelect = fmt::format("SELECT {} FROM operation WHERE id = ?", kColumns);
  VERGER_TRY(auto select, database_.prepare_to_keep(kSelect));
  select.bind(1, std::string_view(id));
  VERGER_TRY(auto rows, read_rows(std::move(select)));
  return rows.empty() ? std::nullopt : std::optional(std::move(rows.front()));
}

Result<void> SqliteOperationJournal::update(const OperationRecord& record) {
  VERGER_TRY(auto update,
             database_.prepare_to_keep("UPDATE operation SET state = ?, error_code = ?, error = ?, "
                                       "result = ?, memory = ?, finished_at = ? WHERE id = ?"));
  update.bind(1, api::to_string(record.status.state))
      .bind(2, std::string_view(record.status.error_code))
      .bind(3, std::string_view(record.status.error))
      .bind(4, std::string_view(record.status.result_json))
      .bind(5, std::string_view(record.memory_json))
      .bind(6, std::string_view(record.status.finished_at))
      .bind(7, std::string_view(record.request.id));
  VERGER_RETURN_IF_ERROR(update.run());
  return {};
}

Result<std::vector<OperationRecord>> SqliteOperationJournal::unfinished() {
  static const auto kSelect = fmt::format(
      "SELECT {} FROM operation WHERE state IN ('accepted', 'acting', 'unknown') ORDER BY sequence",
      kColumns);
  VERGER_TRY(auto select, database_.prepare_to_keep(kSelect));
  return read_rows(std::move(select));
}

Result<std::vector<OperationRecord>> SqliteOperationJournal::newest_ended(int count) {
  static const auto kSelect = fmt::format(
      "SELECT {} FROM operation WHERE state IN ('done', 'failed', 'cancelled') ORDER BY sequence "
      "DESC LIMIT ?",
      kColumns);
  VERGER_TRY(auto select, database_.prepare_to_keep(kSelect));
  select.bind(1, std::int64_t{count});
  return read_rows(std::move(select));
}

Result<void> SqliteOperationJournal::raise_epoch(std::int64_t epoch) {
  VERGER_RETURN_IF_ERROR(check_epoch(highest_epoch_, epoch));
  if (epoch == highest_epoch_) {
    return {};
  }
  VERGER_TRY(auto update, database_.prepare_to_keep("UPDATE controller SET highest_epoch = ?"));
  update.bind(1, epoch);
  VERGER_RETURN_IF_ERROR(update.run());
  highest_epoch_ = epoch;
  return {};
}

Result<void> check_epoch(std::int64_t highest, std::int64_t epoch) {
  if (epoch < highest) {
    return Error{Errc::kRefused,
                 fmt::format("controller epoch {} is older than {}, which this agent has seen; "
                             "another controller has taken over",
                             epoch, highest)};
  }
  if (epoch - highest > kEpochJump) {
    return Error{Errc::kRefused,
                 fmt::format("controller epoch {} is more than {} above {}, the newest that this "
                             "agent has seen: it is not accepted. If it is right, stop the agent "
                             "and run: verger-agent epoch --state DIR --set {}",
                             epoch, kEpochJump, highest, epoch)};
  }
  return {};
}

Result<std::int64_t> read_highest_epoch(FileSystem& files, const Path& journal) {
  VERGER_TRY(const bool there, files.exists(journal));
  if (!there) {
    return Error{Errc::kNotFound, fmt::format("{}: there is no agent's journal", journal.string())};
  }
  VERGER_TRY(const auto opened, OperationJournal::open(files, journal, system_clock()));
  return opened->highest_epoch();
}

Result<std::int64_t> set_highest_epoch(FileSystem& files, const Path& journal, std::int64_t epoch) {
  VERGER_TRY(const auto before, read_highest_epoch(files, journal));
  VERGER_TRY(auto database, sqlite::Database::open(files, journal));
  VERGER_TRY(auto update, database.prepare("UPDATE controller SET highest_epoch = ?"));
  update.bind(1, epoch);
  VERGER_RETURN_IF_ERROR(update.run());
  return before;
}

nlohmann::json memory_of(const OperationRecord& record) {
  auto memory = nlohmann::json::parse(record.memory_json, nullptr, false);
  return memory.is_object() ? memory : nlohmann::json::object();
}

Result<bool> flag_of(const OperationRecord& record, std::string_view parameter) {
  const auto asked = nlohmann::json::parse(record.request.parameters_json, nullptr, false);
  const auto flag =
      asked.is_object() ? asked.value(parameter, nlohmann::json(false)) : nlohmann::json(false);
  if (!flag.is_boolean()) {
    return Error{Errc::kInvalidArgument, fmt::format("{} must be true or false", parameter)};
  }
  return flag.get<bool>();
}

}  // namespace verger::agent
