#include "engine/tool/table.h"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include "engine/base/quantities.h"

namespace verger::tool {

namespace {

constexpr std::size_t kWidth = 100;

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80; }

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string cut(std::string_view text, std::size_t columns) {
  if (width_of(text) <= columns) {
    return std::string(text);
  }
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if (begins_character(text[end]) && seen++ == columns - 1) {
      break;
    }
  }
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    auto width = width_of(columns_[i].title);
    for (const auto& row : rows_) {
      width = std::max(width, width_of(row[i]));
    }
    widths.push_back(width);
  }
  std::size_t before_last = 2 * (columns_.size() - 1);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    before_last += widths[i];
  }
  if (before_last + widths.back() > kWidth) {
    widths.back() = std::max<std::size_t>(kWidth > before_last ? kWidth - before_last : 0, 8);
  }
  const auto print_row = [&](const auto& cell_at) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto cell = cut(cell_at(i), widths[i]);
      const std::string fill(widths[i] - std::min(widths[i], width_of(cell)), ' ');
      line += columns_[i].align == Align::kRight ? fill + cell : cell + fill;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  };
  print_row([&](std::size_t i) -> std::string_view { return columns_[i].title; });
  for (const auto& row : rows_) {
    print_row([&](std::size_t i) -> std::string_view { return row[i]; });
  }
}

std::string human_bytes(std::uint64_t bytes) {
  return verger::human_bytes(static_cast<std::int64_t>(bytes));
}

std::string human_count(std::uint64_t count) {
  return with_separators(static_cast<std::int64_t>(count));
}

std::string printable(std::string_view text, std::size_t columns) {
  std::string shown;
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    shown += value < 0x20 || value == 0x7F ? fmt::format("\\x{:02x}", value) : std::string(1, byte);
  }
  return cut(shown, columns);
}

}  // namespace verger::tool
