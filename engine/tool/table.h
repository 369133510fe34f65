#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace verger::tool {

/// Columns of text for a person, at most 100 wide: the last column is cut where it would not fit.
class Table {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void print(std::ostream& out) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// As all programs print sizes: "1.2 GiB", "340 B".
std::string human_bytes(std::uint64_t bytes);
/// "12,345"
std::string human_count(std::uint64_t count);
/// Text of a log or a person, safe for a terminal: control characters as \xNN, cut to `columns`.
std::string printable(std::string_view text, std::size_t columns = 1000);

}  // namespace verger::tool
