#include "controller/cli/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <ostream>

namespace verger::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::string_view kGap = "  ";

/// Number of characters, not bytes: names may be UTF-8.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string cut(const std::string& text, std::size_t width) {
  if (length_of(text) <= width) {
    return text;
  }
  std::string out;
  std::size_t seen = 0;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (starts && ++seen == width) {
      break;
    }
    out += c;
  }
  return out + "…";
}

/// Lines of at most `width` characters, broken at spaces; a longer word is cut.
std::vector<std::string> wrap(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    const auto word = cut(text.substr(at, end - at), width);
    auto& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (length_of(line) + 1 + length_of(word) <= width) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
    at = end + 1;
  }
  return lines;
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = length_of(columns_[i].title);
    for (const auto& row : rows_) {
      width = std::max(width, length_of(row[i]));
    }
    widths.push_back(width);
  }
  const auto total = [&] {
    std::size_t sum = kGap.size() * (widths.empty() ? 0 : widths.size() - 1);
    for (const auto width : widths) {
      sum += width;
    }
    return sum;
  };
  while (total() > kWidth) {
    auto& widest = *std::ranges::max_element(widths);
    if (widest <= 8) {
      break;
    }
    --widest;
  }
  const auto print_row = [&](const auto& cell_of) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto cell = cut(cell_of(i), widths[i]);
      const std::string pad(widths[i] - std::min(widths[i], length_of(cell)), ' ');
      if (i > 0) {
        line += kGap;
      }
      line += columns_[i].align == Align::kRight ? pad + cell : cell + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  };
  print_row([&](std::size_t i) { return columns_[i].title; });
  for (const auto& row : rows_) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      cells.push_back(columns_[i].align == Align::kWrap ? wrap(row[i], widths[i])
                                                        : std::vector{row[i]});
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t line = 0; line < lines; ++line) {
      print_row(
          [&](std::size_t i) { return line < cells[i].size() ? cells[i][line] : std::string(); });
    }
  }
}

std::string with_separators(std::int64_t number) {
  auto digits = fmt::format("{}", number < 0 ? -number : number);
  for (auto at = static_cast<std::int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return number < 0 ? "-" + digits : digits;
}

std::string human_bytes(std::int64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace verger::cli
