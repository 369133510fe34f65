#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace verger::cli {

/// Rows under a heading, in columns as wide as their content, at most 100 columns in all. Where a
/// row would be longer the widest column is cut (with "…"), or goes on in the next line (kWrap).
class Table {
 public:
  enum class Align : std::uint8_t { kLeft, kRight, kWrap };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells);
  void print(std::ostream& out) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// 1234567 -> "1,234,567"
std::string with_separators(std::int64_t number);
/// 70507 -> "68.9 KiB"
std::string human_bytes(std::int64_t bytes);

}  // namespace verger::cli
