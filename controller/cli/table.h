#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace verger::cli {

/// Rows under a heading, in columns as wide as their content. What there is no room for in the
/// width of a terminal is wrapped between words (kWrap) or shortened to what commands take
/// (kId); nothing else is ever shortened, and without a width nothing at all.
class Table {
 public:
  enum class Align : std::uint8_t {
    kLeft,
    kRight,
    kWrap,  ///< text of several words
    kId,    ///< a hash or an id, of which the first twelve digits will do
  };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    bool optional = false;  ///< left out where no row has anything but "-" in it
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// `width`: characters in a line; nullopt: as many as it takes, as in a pipe or a file. Where
  /// even wrapped columns leave too little room, their text follows each row in lines of its own.
  void print(std::ostream& out, std::optional<std::size_t> width = std::nullopt) const;

 private:
  struct Layout;
  /// Without the optional columns that say nothing.
  [[nodiscard]] Table without_empty_columns() const;
  void print_row(std::ostream& out, const Layout& layout,
                 const std::vector<std::string>& row) const;
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Lines of at most `width` characters, broken at spaces; a longer word has a line of its own.
std::vector<std::string> wrapped(const std::string& text, std::size_t width);
/// Of the terminal that `out` writes to; nullopt: it is none.
std::optional<std::size_t> terminal_width(const std::ostream& out);

}  // namespace verger::cli
