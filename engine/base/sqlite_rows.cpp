#include "engine/base/sqlite_rows.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <string>
#include <utility>

namespace verger::sqlite {
namespace {

constexpr std::size_t kBetweenPauses = 1024;
/// Of a full scan, for SQLite's planner: more than of a look at any other table.
constexpr double kCostOfScan = 1e9;

}  // namespace

struct MemoryRows::State {
  struct Table : sqlite3_vtab {
    State* state = nullptr;
  };
  struct Cursor : sqlite3_vtab_cursor {
    State* state = nullptr;
    std::size_t row = 0;
  };

  std::string declaration;
  Rows rows;
  Result<void> paused;

  // What SQLite calls: https://www.sqlite.org/vtab.html
  static int connect(sqlite3* database, void* state, int /*count*/, const char* const* /*words*/,
                     sqlite3_vtab** table, char** /*error*/) {
    auto made = std::make_unique<Table>();
    made->state = static_cast<State*>(state);
    const int code = sqlite3_declare_vtab(database, made->state->declaration.c_str());
    *table = code == SQLITE_OK ? made.release() : nullptr;
    return code;
  }
  static int disconnect(sqlite3_vtab* table) {
    const std::unique_ptr<Table> ended(static_cast<Table*>(table));
    return SQLITE_OK;
  }
  static int best_index(sqlite3_vtab* /*table*/, sqlite3_index_info* info) {
    info->estimatedCost = kCostOfScan;
    return SQLITE_OK;
  }
  static int open(sqlite3_vtab* table, sqlite3_vtab_cursor** cursor) {
    auto made = std::make_unique<Cursor>();
    made->state = static_cast<Table*>(table)->state;
    *cursor = made.release();
    return SQLITE_OK;
  }
  static int close(sqlite3_vtab_cursor* cursor) {
    const std::unique_ptr<Cursor> ended(static_cast<Cursor*>(cursor));
    return SQLITE_OK;
  }
  static int filter(sqlite3_vtab_cursor* cursor, int /*number*/, const char* /*text*/,
                    int /*count*/, sqlite3_value** /*values*/) {
    return go_to(*static_cast<Cursor*>(cursor), 0);
  }
  static int next(sqlite3_vtab_cursor* base) {
    auto& cursor = *static_cast<Cursor*>(base);
    return go_to(cursor, cursor.row + 1);
  }
  static int go_to(Cursor& cursor, std::size_t row) {
    auto& state = *cursor.state;
    cursor.row = row;
    if (row % kBetweenPauses == 0 && row < state.rows.count && state.rows.pause) {
      state.paused = state.rows.pause();
    }
    return state.paused ? SQLITE_OK : SQLITE_INTERRUPT;
  }
  static int eof(sqlite3_vtab_cursor* base) {
    const auto& cursor = *static_cast<Cursor*>(base);
    return cursor.row >= cursor.state->rows.count ? 1 : 0;
  }
  static int column(sqlite3_vtab_cursor* base, sqlite3_context* context, int number) {
    const auto& cursor = *static_cast<Cursor*>(base);
    const auto value = cursor.state->rows.value(cursor.row, number);
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      sqlite3_result_int64(context, *integer);
    } else if (const auto* text = std::get_if<std::string_view>(&value)) {
      sqlite3_result_text64(context, text->empty() ? "" : text->data(), text->size(), SQLITE_STATIC,
                            SQLITE_UTF8);
    } else {
      sqlite3_result_null(context);
    }
    return SQLITE_OK;
  }
  static int rowid(sqlite3_vtab_cursor* cursor, sqlite3_int64* id) {
    *id = static_cast<sqlite3_int64>(static_cast<Cursor*>(cursor)->row);
    return SQLITE_OK;
  }

  static const sqlite3_module& module() {
    static const auto kModule = [] {
      sqlite3_module made{};  // without xCreate there is one such table, always
      made.xConnect = connect;
      made.xBestIndex = best_index;
      made.xDisconnect = disconnect;
      made.xOpen = open;
      made.xClose = close;
      made.xFilter = filter;
      made.xNext = next;
      made.xEof = eof;
      made.xColumn = column;
      made.xRowid = rowid;
      return made;
    }();
    return kModule;
  }
};

MemoryRows::MemoryRows(std::unique_ptr<State> state) : state_(std::move(state)) {}
MemoryRows::MemoryRows(MemoryRows&&) noexcept = default;
MemoryRows& MemoryRows::operator=(MemoryRows&&) noexcept = default;
MemoryRows::~MemoryRows() = default;

Result<MemoryRows> MemoryRows::create(Database& database, std::string_view name, int columns) {
  auto state = std::make_unique<State>();
  state->declaration = "CREATE TABLE x(c0";
  for (int n = 1; n < columns; ++n) {
    state->declaration += fmt::format(", c{}", n);
  }
  state->declaration += ")";
  VERGER_RETURN_IF_ERROR(database.add_module(name, &State::module(), state.get()));
  return MemoryRows(std::move(state));
}

Result<bool> MemoryRows::run(Statement& statement, Rows rows) {
  state_->rows = std::move(rows);
  state_->paused = {};
  auto found = statement.step();
  statement.reset();
  state_->rows = {};
  VERGER_RETURN_IF_ERROR(state_->paused);
  return found;
}

}  // namespace verger::sqlite
