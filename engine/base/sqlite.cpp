#include "engine/base/sqlite.h"

#include <algorithm>
#include <fmt/format.h>
#include <sqlite3.h>
#include <utility>
#include <vector>

#include "engine/base/assert.h"
#include "engine/base/detail/sqlite_snapshot.h"
#include "engine/base/detail/sqlite_vfs.h"

namespace verger::sqlite {

using detail::last_disk_error;

/// There are few of them: those of one program's texts.
struct detail::IdleStatements {
  std::vector<sqlite3_stmt*> statements;

  sqlite3_stmt* take(std::string_view sql) {
    const auto found = std::ranges::find(
        statements, sql, [](auto* each) { return std::string_view(sqlite3_sql(each)); });
    if (found == statements.end()) {
      return nullptr;
    }
    auto* statement = std::exchange(*found, statements.back());
    statements.pop_back();
    return statement;
  }
  void finalize_all() {
    for (auto* statement : std::exchange(statements, {})) {
      sqlite3_finalize(statement);
    }
  }
};

namespace {

Errc errc_of(int code) {
  switch (code & 0xff) {
    case SQLITE_FULL:
      return Errc::kNoSpace;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_READONLY:
      return Errc::kRefused;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Errc::kCorruption;
    case SQLITE_CONSTRAINT:
      return Errc::kConflict;
    case SQLITE_INTERRUPT:
      return Errc::kCancelled;
    case SQLITE_ERROR:
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
      return Errc::kInvalidArgument;
    default:
      return Errc::kIo;
  }
}

/// The error of the last call on `database`, which returned `code`.
Error error_of(sqlite3* database, int code, const Path& path, std::string_view what) {
  Error error{errc_of(code),
              fmt::format("{}: {}: {}", path.string(), what,
                          database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code))};
  const auto& disk = last_disk_error();
  if (disk &&
      (error.code == Errc::kIo || error.code == Errc::kNoSpace || error.code == Errc::kRefused)) {
    if (disk->code == Errc::kNoSpace || disk->code == Errc::kNotFound) {
      error.code = disk->code;
    }
    error.message += " (" + disk->message + ")";
  }
  return error;
}

Error error_of(sqlite3_stmt* statement, int code) {
  sqlite3* database = sqlite3_db_handle(statement);
  const char* path = sqlite3_db_filename(database, "main");
  const char* sql = sqlite3_sql(statement);
  return error_of(database, code, path != nullptr ? path : "",
                  fmt::format("\"{}\"", sql != nullptr ? sql : ""));
}

}  // namespace

Statement::Statement(sqlite3_stmt* statement, detail::IdleStatements* home)
    : statement_(statement), home_(home) {}
Statement::Statement(Statement&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)),
      home_(other.home_),
      bind_error_(other.bind_error_) {}
Statement& Statement::operator=(Statement&& other) noexcept {
  if (this != &other) {
    let_go();
    statement_ = std::exchange(other.statement_, nullptr);
    home_ = other.home_;
    bind_error_ = other.bind_error_;
  }
  return *this;
}
Statement::~Statement() { let_go(); }

void Statement::let_go() {
  if (statement_ == nullptr) {
    return;
  }
  if (home_ == nullptr) {
    sqlite3_finalize(statement_);
    return;
  }
  reset();
  home_->statements.push_back(statement_);
}

Statement& Statement::noted(int code) {
  if (code != SQLITE_OK && bind_error_ == SQLITE_OK) {
    bind_error_ = code;
  }
  return *this;
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  return noted(sqlite3_bind_int64(statement_, parameter, value));
}
Statement& Statement::bind(int parameter, double value) {
  return noted(sqlite3_bind_double(statement_, parameter, value));
}
Statement& Statement::bind(int parameter, std::string_view text) {
  // A null pointer would bind NULL.
  return noted(sqlite3_bind_text64(statement_, parameter, text.empty() ? "" : text.data(),
                                   text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}
Statement& Statement::bind(int parameter, ByteView blob) {
  return noted(sqlite3_bind_blob64(statement_, parameter,
                                   blob.empty() ? static_cast<const void*>("") : blob.data(),
                                   blob.size(), SQLITE_TRANSIENT));
}
Statement& Statement::bind_null(int parameter) {
  return noted(sqlite3_bind_null(statement_, parameter));
}

Result<bool> Statement::step() {
  if (bind_error_ != SQLITE_OK) {
    const char* path = sqlite3_db_filename(sqlite3_db_handle(statement_), "main");
    return Error{errc_of(bind_error_),
                 fmt::format("{}: \"{}\": cannot bind a parameter: {}", path != nullptr ? path : "",
                             sqlite3_sql(statement_), sqlite3_errstr(bind_error_))};
  }
  last_disk_error().reset();
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW || code == SQLITE_DONE) {
    return code == SQLITE_ROW;
  }
  auto error = error_of(statement_, code);
  sqlite3_reset(statement_);  // lets the transaction end; repeats the error
  return error;
}

Result<void> Statement::run() {
  const auto stepped = step();
  reset();
  if (!stepped) {
    return stepped.error();
  }
  return {};
}

Result<void> Statement::finish() {
  const int code = sqlite3_reset(statement_);
  if (code != SQLITE_OK) {
    return error_of(statement_, code);
  }
  return {};
}

void Statement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  bind_error_ = SQLITE_OK;
}

std::int64_t Statement::column_int(int column) const {
  return sqlite3_column_int64(statement_, column);
}
double Statement::column_double(int column) const {
  return sqlite3_column_double(statement_, column);
}
std::string_view Statement::column_text(int column) const {
  // The order matters: reading the text may convert, and the size is that of the converted.
  const auto* text = sqlite3_column_text(statement_, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return text == nullptr ? std::string_view()
                         : std::string_view(reinterpret_cast<const char*>(text), size);
}
ByteView Statement::column_blob(int column) const {
  const auto* blob = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return blob == nullptr ? ByteView() : ByteView(blob, size);
}
bool Statement::column_is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

struct Database::Handle {
  Path path;
  std::unique_ptr<MemoryFileSystem>
      snapshot;  ///< outlives the VFS, as that outlives the connection
  std::shared_ptr<detail::Vfs> vfs;
  sqlite3* connection = nullptr;
  detail::IdleStatements idle;

  Handle() = default;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { VERGER_ASSERT(close() == SQLITE_OK); }  // otherwise a Statement is still alive

  int close() {
    idle.finalize_all();
    const int code = sqlite3_close(connection);
    if (code == SQLITE_OK) {
      connection = nullptr;
    }
    return code;
  }

  Result<void> open(FileSystem& files, bool create) {
    vfs = detail::Vfs::of(files);
    last_disk_error().reset();
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    const int code = sqlite3_open_v2(path.c_str(), &connection, flags, vfs->name());
    if (code != SQLITE_OK) {
      return error_of(connection, code, path, "cannot open the database");
    }
    sqlite3_extended_result_codes(connection, 1);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    return {};
  }

  Result<void> execute(std::string_view sql) const {
    last_disk_error().reset();
    const int code = sqlite3_exec(connection, std::string(sql).c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) {
      return error_of(connection, code, path, fmt::format("\"{}\"", sql));
    }
    return {};
  }

  Result<sqlite3_stmt*> prepare(std::string_view sql, unsigned flags) const {
    last_disk_error().reset();
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(connection, sql.data(), static_cast<int>(sql.size()), flags,
                                        &statement, nullptr);
    if (code != SQLITE_OK) {
      return error_of(connection, code, path, fmt::format("\"{}\"", sql));
    }
    if (statement == nullptr) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("{}: \"{}\" holds no statement", path.string(), sql)};
    }
    return statement;
  }
};

Database::Database(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::open(FileSystem& files, const Path& path, OpenOptions options) {
  if (options.read_only) {
    return open_snapshot(files, path);
  }
  auto handle = std::make_unique<Handle>();
  handle->path = path;
  VERGER_RETURN_IF_ERROR(handle->open(files, options.create));
  // Before the first access: a WAL database could not be read otherwise. The file may come from
  // somewhere else, so its schema is not trusted.
  VERGER_RETURN_IF_ERROR(handle->execute(
      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF; "
      "PRAGMA cell_size_check=ON"));
  Database database(std::move(handle));
  // Takes the lock and recovers what a killed process left. The page size of an empty file stays
  // open until the first table.
  VERGER_RETURN_IF_ERROR(database.query_int("PRAGMA schema_version"));
  if (options.own_state) {
    VERGER_TRY(const auto mode, database.query_text("PRAGMA journal_mode=WAL"));
    if (mode != "wal") {
      return Error{Errc::kIo,
                   fmt::format("{}: cannot use a write-ahead log, the journal mode is {}",
                               path.string(), mode.value_or("unknown"))};
    }
    VERGER_RETURN_IF_ERROR(database.execute("PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON"));
  }
  return database;
}

Result<Database> Database::open_snapshot(FileSystem& files, const Path& path) {
  auto handle = std::make_unique<Handle>();
  handle->path = path;
  VERGER_TRY(handle->snapshot, detail::copy_database(files, path));
  VERGER_RETURN_IF_ERROR(handle->open(*handle->snapshot, false));
  VERGER_RETURN_IF_ERROR(handle->execute(
      "PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF; "
      "PRAGMA cell_size_check=ON"));
  Database database(std::move(handle));
  VERGER_RETURN_IF_ERROR(database.query_int("PRAGMA schema_version"));
  VERGER_RETURN_IF_ERROR(database.execute("PRAGMA query_only=ON"));
  return database;
}

Result<void> Database::execute(std::string_view sql) { return handle_->execute(sql); }

Result<Statement> Database::prepare(std::string_view sql) {
  VERGER_TRY(auto* statement, handle_->prepare(sql, 0));
  return Statement(statement, nullptr);
}

Result<Statement> Database::prepare_to_keep(std::string_view sql) {
  auto* statement = handle_->idle.take(sql);
  if (statement == nullptr) {
    VERGER_TRY(statement, handle_->prepare(sql, SQLITE_PREPARE_PERSISTENT));
  }
  return Statement(statement, &handle_->idle);
}

Result<std::optional<std::string>> Database::query_text(std::string_view sql) {
  VERGER_TRY(auto statement, prepare(sql));
  VERGER_TRY(const bool row, statement.step());
  std::optional<std::string> text;
  if (row && !statement.column_is_null(0)) {
    text = statement.column_text(0);
  }
  VERGER_RETURN_IF_ERROR(statement.finish());
  return text;
}

Result<std::int64_t> Database::query_int(std::string_view sql) {
  VERGER_TRY(auto statement, prepare(sql));
  VERGER_TRY(const bool row, statement.step());
  if (!row) {
    return Error{Errc::kNotFound, fmt::format("{}: \"{}\": no row", handle_->path.string(), sql)};
  }
  const std::int64_t value = statement.column_int(0);
  VERGER_RETURN_IF_ERROR(statement.finish());
  return value;
}

std::int64_t Database::last_insert_rowid() const {
  return sqlite3_last_insert_rowid(handle_->connection);
}
std::int64_t Database::changes() const { return sqlite3_changes64(handle_->connection); }
bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_->connection) == 0; }

Result<void> Database::add_module(std::string_view name, const sqlite3_module* module, void* data) {
  const int code =
      sqlite3_create_module(handle_->connection, std::string(name).c_str(), module, data);
  if (code != SQLITE_OK) {
    return error_of(handle_->connection, code, handle_->path,
                    fmt::format("cannot add the table {}", name));
  }
  return {};
}

Result<void> Database::close() {
  if (!handle_ || handle_->connection == nullptr) {
    return {};
  }
  last_disk_error().reset();
  // SQLite does the same when closing, but does not say how it went.
  int code = in_transaction()
                 ? SQLITE_OK
                 : sqlite3_wal_checkpoint_v2(handle_->connection, nullptr,
                                             SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  Result<void> result;
  if (code != SQLITE_OK) {
    result =
        error_of(handle_->connection, code, handle_->path, "cannot finish the write-ahead log");
  }
  code = handle_->close();
  if (code != SQLITE_OK) {
    return error_of(handle_->connection, code, handle_->path, "cannot close the database");
  }
  if (const auto& disk = last_disk_error(); result && disk.has_value()) {
    result = disk->within(handle_->path.string() + ": while closing");
  }
  return result;
}

Result<Transaction> Transaction::begin(Database& database) {
  VERGER_RETURN_IF_ERROR(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}
Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}
Transaction::~Transaction() {
  // Some errors have rolled back already.
  if (database_ != nullptr && database_->in_transaction()) {
    static_cast<void>(database_->execute("ROLLBACK"));  // its failure needs no action
  }
}
Result<void> Transaction::commit() {
  VERGER_ASSERT(database_ != nullptr);
  VERGER_RETURN_IF_ERROR(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace verger::sqlite
