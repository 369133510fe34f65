#include "controller/cli/table.h"

#include <algorithm>
#include <iostream>
#include <sys/ioctl.h>
#include <type_traits>
#include <unistd.h>

namespace verger::cli {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::size_t kIdLength = 12;
/// A wrapped column that is narrower than this reads worse than lines of its own.
constexpr std::size_t kReadable = 24;
constexpr std::string_view kIndent = "    ";

/// Number of characters, not bytes: names may be UTF-8.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::size_t longest_word(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    longest = std::max(longest, length_of(text.substr(at, end - at)));
    at = end + 1;
  }
  return longest;
}

void end_line(std::ostream& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out << line << '\n';
}

}  // namespace

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    const auto word = text.substr(at, end - at);
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

struct Table::Layout {
  std::vector<std::size_t> widths;
  bool short_ids = false;
  /// 0: wrapped columns are columns; else the width of the lines that hold their text.
  std::size_t below = 0;

  Layout(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows,
         std::optional<std::size_t> limit) {
    std::vector<std::size_t> least;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      widths.push_back(length_of(columns[i].title));
      least.push_back(longest_word(columns[i].title));
      for (const auto& row : rows) {
        widths[i] = std::max(widths[i], length_of(row[i]));
        least[i] = std::max(least[i], longest_word(row[i]));
      }
    }
    if (!limit || total(columns) <= *limit) {
      return;
    }
    short_ids = true;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].align == Align::kId) {
        widths[i] = std::min(widths[i], std::max(kIdLength, length_of(columns[i].title)));
      }
    }
    const auto natural = widths;
    while (total(columns) > *limit) {
      std::size_t widest = columns.size();
      for (std::size_t i = 0; i < columns.size(); ++i) {
        if (columns[i].align == Align::kWrap && widths[i] > least[i] &&
            (widest == columns.size() || widths[i] > widths[widest])) {
          widest = i;
        }
      }
      if (widest == columns.size()) {
        break;
      }
      --widths[widest];
    }
    bool cramped = total(columns) > *limit;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      cramped = cramped ||
                (columns[i].align == Align::kWrap && widths[i] < std::min(natural[i], kReadable));
    }
    if (cramped && std::ranges::find(columns, Align::kWrap, &Column::align) != columns.end()) {
      below = std::max(*limit, kIndent.size() + kReadable) - kIndent.size();
    }
  }

 private:
  [[nodiscard]] std::size_t total(const std::vector<Column>& columns) const {
    std::size_t sum = kGap.size() * (columns.empty() ? 0 : columns.size() - 1);
    for (const auto width : widths) {
      sum += width;
    }
    return sum;
  }
};

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void Table::print_row(std::ostream& out, const Layout& layout,
                      const std::vector<std::string>& row) const {
  std::vector<std::vector<std::string>> cells;
  std::size_t lines = 1;
  std::string below;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto align = columns_[i].align;
    if (align == Align::kWrap && layout.below > 0) {
      below += (below.empty() || row[i].empty() ? "" : "; ") + row[i];
      cells.emplace_back(1);
    } else if (align == Align::kWrap) {
      cells.push_back(wrapped(row[i], layout.widths[i]));
    } else {
      const bool cut = align == Align::kId && layout.short_ids;
      cells.push_back(
          {cut ? row[i].substr(0, std::max(kIdLength, length_of(columns_[i].title))) : row[i]});
    }
    lines = std::max(lines, cells.back().size());
  }
  for (std::size_t line = 0; line < lines; ++line) {
    std::string text;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].align == Align::kWrap && layout.below > 0) {
        continue;
      }
      const auto cell = line < cells[i].size() ? cells[i][line] : std::string();
      const std::string pad(layout.widths[i] - std::min(layout.widths[i], length_of(cell)), ' ');
      text += (text.empty() ? "" : kGap);
      text += columns_[i].align == Align::kRight ? pad + cell : cell + pad;
    }
    end_line(out, std::move(text));
  }
  if (!below.empty()) {
    for (const auto& line : wrapped(below, layout.below)) {
      end_line(out, std::string(kIndent) + line);
    }
  }
}

Table Table::without_empty_columns() const {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const bool says_something = std::ranges::any_of(
        rows_, [i](const auto& row) { return !row[i].empty() && row[i] != "-"; });
    if (!columns_[i].optional || says_something) {
      kept.push_back(i);
    }
  }
  const auto pick = [&kept](const auto& all) {
    std::remove_cvref_t<decltype(all)> out;
    for (const auto i : kept) {
      out.push_back(all[i]);
    }
    return out;
  };
  Table out(pick(columns_));
  for (const auto& row : rows_) {
    out.rows_.push_back(pick(row));
  }
  return out;
}

void Table::print(std::ostream& out, std::optional<std::size_t> width) const {
  if (std::ranges::any_of(columns_, &Column::optional)) {
    auto table = without_empty_columns();
    for (auto& column : table.columns_) {
      column.optional = false;
    }
    table.print(out, width);
    return;
  }
  const Layout layout(columns_, rows_, width);
  std::vector<std::string> titles;
  titles.reserve(columns_.size());
  for (const auto& column : columns_) {
    titles.push_back(column.align == Align::kWrap && layout.below > 0 ? "" : column.title);
  }
  print_row(out, layout, titles);
  for (const auto& row : rows_) {
    print_row(out, layout, row);
  }
}

std::optional<std::size_t> terminal_width(const std::ostream& out) {
  winsize size{};
  if (&out != &std::cout || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return std::nullopt;
  }
  return size.ws_col;
}

}  // namespace verger::cli
