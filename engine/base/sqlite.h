#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

struct sqlite3;
struct sqlite3_module;
struct sqlite3_stmt;

namespace verger::sqlite {

namespace detail {
struct IdleStatements;
}

/// A prepared statement. Parameters count from 1, columns from 0. Keep it and reset() it where it
/// is used often, or have the Database keep it. Must not outlive its Database.
class Statement {
 public:
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;
  ~Statement();

  Statement& bind(int parameter, std::int64_t value);
  template <std::integral T>
  Statement& bind(int parameter, T value) {
    return bind(parameter, static_cast<std::int64_t>(value));
  }
  Statement& bind(int parameter, double value);
  Statement& bind(int parameter, std::string_view text);
  Statement& bind(int parameter, ByteView blob);
  Statement& bind_null(int parameter);
  template <class T>
  Statement& bind(int parameter, const std::optional<T>& value) {
    return value ? bind(parameter, *value) : bind_null(parameter);
  }

  /// True when there is a row, false at the end. A failed bind is reported here.
  Result<bool> step();
  /// For statements without rows: step, then reset.
  Result<void> run();
  /// Makes it ready for new parameters; they are cleared.
  void reset();

  std::int64_t column_int(int column) const;
  double column_double(int column) const;
  /// Valid until the next step() or reset().
  std::string_view column_text(int column) const;
  ByteView column_blob(int column) const;
  bool column_is_null(int column) const;

 private:
  friend class Database;
  Statement(sqlite3_stmt* statement, detail::IdleStatements* home);
  void let_go();
  Statement& noted(int code);
  /// Ends it after some row. A pragma that changes something, such as the journal mode, commits
  /// only then, and may fail.
  Result<void> finish();
  sqlite3_stmt* statement_;
  detail::IdleStatements* home_;  ///< nullptr: it ends here
  int bind_error_ = 0;
};

struct OpenOptions {
  /// Opens a copy as open_snapshot() does; the other options do not matter then.
  bool read_only = false;
  bool create = true;
  /// WAL, synchronous=FULL, foreign_keys=ON: our own state. false leaves SQLite's defaults, for
  /// scavenging.db, whose pragmas its owner sets.
  bool own_state = true;
};

/// One connection, one thread at a time. All file access goes through the FileSystem, which must
/// outlive it. Exclusive locking mode: the database is locked from opening to closing, also against
/// a second connection of the same program, and a -shm file is never made. Errors: kIo, kNoSpace,
/// kCorruption ("not a database" too), kRefused (locked), kConflict (constraint),
/// kInvalidArgument (SQL that SQLite refuses).
class Database {
 public:
  /// A -wal or -journal file left by a killed process is recovered. Error: kNotFound when there is
  /// no file and none may be created.
  static Result<Database> open(FileSystem& files, const Path& path, OpenOptions options = {});
  /// Reads the database, with what its -wal or -journal file holds, into memory and opens that copy
  /// for queries. The source is neither written nor locked, and may belong to a running server: the
  /// copy is of one moment. Needs as much memory as the files are large. Errors: kNotFound,
  /// kUnavailable (the source changes too fast), and those above.
  static Result<Database> open_snapshot(FileSystem& files, const Path& path);
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  /// One or more statements without results.
  Result<void> execute(std::string_view sql);
  Result<Statement> prepare(std::string_view sql);
  /// For frequent queries: a released statement waits here, reset, for the next caller that
  /// prepares the same text.
  Result<Statement> prepare_to_keep(std::string_view sql);
  /// First column of the first row, for pragmas and counts; nullopt without a row.
  Result<std::optional<std::string>> query_text(std::string_view sql);
  Result<std::int64_t> query_int(std::string_view sql);
  std::int64_t last_insert_rowid() const;
  std::int64_t changes() const;
  bool in_transaction() const;
  /// A kind of virtual table; both outlive the database's use of it.
  Result<void> add_module(std::string_view name, const sqlite3_module* module, void* data);
  /// Looks at the result of closing, which a destructor cannot.
  Result<void> close();

 private:
  struct Handle;
  explicit Database(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

/// BEGIN IMMEDIATE; rolls back unless commit() succeeded. The Database must stay where it is
/// meanwhile. After a commit() that failed with kIo the transaction may or may not be there when
/// the database is opened again.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&&) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace verger::sqlite
