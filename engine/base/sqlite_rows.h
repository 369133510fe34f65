#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <variant>

#include "engine/base/result.h"
#include "engine/base/sqlite.h"

namespace verger::sqlite {

/// A table of rows in memory, for statements that take many at once: "INSERT INTO t SELECT c0, c1
/// FROM name" costs two thirds of as many statements with parameters. Must not outlive its
/// Database, and statements that name it must not outlive it.
class MemoryRows {
 public:
  using Value = std::variant<std::monostate, std::int64_t, std::string_view>;
  struct Rows {
    std::size_t count = 0;
    /// Texts stay valid until the statement has run.
    std::function<Value(std::size_t row, int column)> value;
    /// Called now and then; its error ends the statement.
    std::function<Result<void>()> pause;
  };

  /// The columns are c0, c1 and so on.
  static Result<MemoryRows> create(Database& database, std::string_view name, int columns);
  MemoryRows(MemoryRows&&) noexcept;
  MemoryRows& operator=(MemoryRows&&) noexcept;
  ~MemoryRows();

  /// Runs a statement that reads the table, to its end, and gives whether it had a row. Errors:
  /// those of `pause`, and of Statement::step.
  Result<bool> run(Statement& statement, Rows rows);

 private:
  struct State;
  explicit MemoryRows(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace verger::sqlite
