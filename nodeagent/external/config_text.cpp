#include "nodeagent/external/config_text.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "engine/base/number_from_text.h"

namespace verger::external {
namespace {

constexpr std::string_view kBlanks = " \t\r";

/// A piece of the text, by where it is.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::string_view of(std::string_view text) const {
    return text.substr(begin, end - begin);
  }
};

Span trimmed(std::string_view text, Span span) {
  while (span.begin < span.end && kBlanks.contains(text[span.begin])) {
    ++span.begin;
  }
  while (span.begin < span.end && kBlanks.contains(text[span.end - 1])) {
    --span.end;
  }
  return span;
}

/// Without a comment: '#' at the beginning, or behind a blank.
Span without_comment(std::string_view text, Span span) {
  for (auto at = span.begin; at < span.end; ++at) {
    if (text[at] == '#' && (at == span.begin || kBlanks.contains(text[at - 1]))) {
      span.end = at;
    }
  }
  return span;
}

struct Line {
  int number = 0;
  Span whole{};    ///< with its end
  Span content{};  ///< without its end and its comment
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> out;
  for (std::size_t at = 0; at < text.size();) {
    const auto newline = text.find('\n', at);
    const auto end = newline == std::string_view::npos ? text.size() : newline + 1;
    const auto last = newline == std::string_view::npos ? text.size() : newline;
    out.push_back({.number = static_cast<int>(out.size()) + 1,
                   .whole = {at, end},
                   .content = without_comment(text, {at, last})});
    at = end;
  }
  return out;
}

std::string key_form(std::string_view key) {
  std::string out;
  for (const char each : key) {
    if (each != '-' && each != '_' && each != '"' && each != '\'') {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    }
  }
  return out;
}

/// "host:port" with what is around it.
struct Item {
  Span raw{};   ///< with quotes; of a block list, of its text alone
  Span line{};  ///< of a block list: the whole line
  std::string text{};
  std::string quote{};
};

/// Error: kUnsupported: it is no plain text.
Result<Item> item_at(std::string_view text, Span span, int line) {
  span = trimmed(text, span);
  Item out{.raw = span};
  auto value = span.of(text);
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
      value.back() == value.front()) {
    out.quote = value.front();
    value = value.substr(1, value.size() - 2);
  }
  constexpr std::string_view kSpecial = "\"'\\[]{}&*!|>%@`, ";
  if (value.empty() || value.find_first_of(kSpecial) != std::string_view::npos) {
    return Error{Errc::kUnsupported,
                 fmt::format("line {}: \"{}\" is not understood", line, span.of(text))};
  }
  out.text = value;
  return out;
}

enum class ListForm : std::uint8_t { kScalar, kFlow, kBlock };

struct SeedLines {
  ListForm form = ListForm::kScalar;
  std::vector<Item> items{};
};

struct Found {
  std::optional<Item> size{};
  std::optional<SeedLines> seeds{};
};

Result<SeedLines> comma_list(std::string_view text, Span value, int line) {
  SeedLines out;
  const auto raw = value.of(text);
  if (raw.front() == '[') {
    out.form = ListForm::kFlow;
    if (raw.back() != ']') {
      return Error{Errc::kUnsupported,
                   fmt::format("line {}: a list in brackets has to end on its line", line)};
    }
    value = {value.begin + 1, value.end - 1};
  } else if (raw.size() >= 2 && (raw.front() == '"' || raw.front() == '\'') &&
             raw.back() == raw.front()) {
    value = {value.begin + 1, value.end - 1};  // the quotes are around the list
  }
  for (auto at = value.begin; at <= value.end;) {
    const auto comma = std::min(text.find(',', at), value.end);
    VERGER_TRY(auto item, item_at(text, {at, comma}, line));
    out.items.push_back(std::move(item));
    at = comma + 1;
  }
  return out;
}

/// The lines behind "GossipSeed:".
Result<SeedLines> block_list(std::string_view text, const std::vector<Line>& lines,
                             std::size_t first) {
  SeedLines out{.form = ListForm::kBlock};
  for (auto i = first; i < lines.size(); ++i) {
    const auto content = trimmed(text, lines[i].content);
    if (content.begin == content.end) {
      continue;
    }
    const auto words = content.of(text);
    if (!words.starts_with("- ")) {
      break;
    }
    VERGER_TRY(auto item, item_at(text, {content.begin + 1, content.end}, lines[i].number));
    item.line = lines[i].whole;
    out.items.push_back(std::move(item));
  }
  if (out.items.empty()) {
    return Error{Errc::kUnsupported, "GossipSeed has no value"};
  }
  return out;
}

Result<Found> find_lines(std::string_view text) {
  Found out;
  const auto lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto content = lines[i].content;
    const auto words = content.of(text);
    const auto colon = words.find(':');
    if (words.empty() || kBlanks.contains(words.front()) || words.front() == '-' ||
        colon == std::string_view::npos) {
      continue;
    }
    const auto key = key_form(words.substr(0, colon));
    const auto value = trimmed(text, {content.begin + colon + 1, content.end});
    if (key == "clustersize") {
      if (out.size) {
        return Error{Errc::kUnsupported,
                     fmt::format("line {}: ClusterSize once more", lines[i].number)};
      }
      VERGER_TRY(out.size, item_at(text, value, lines[i].number));
    } else if (key == "gossipseed") {
      if (out.seeds) {
        return Error{Errc::kUnsupported,
                     fmt::format("line {}: GossipSeed once more", lines[i].number)};
      }
      auto seeds = value.begin == value.end ? block_list(text, lines, i + 1)
                                            : comma_list(text, value, lines[i].number);
      VERGER_TRY(out.seeds, std::move(seeds));
    }
  }
  return out;
}

Result<std::int32_t> size_of(const Found& found) {
  if (!found.size) {
    return 0;
  }
  const auto size = number_from_text<std::int32_t>(found.size->text);
  if (!size || *size < 1) {
    return Error{Errc::kUnsupported,
                 fmt::format("ClusterSize is \"{}\", which is no number", found.size->text)};
  }
  return *size;
}

/// Replacements of pieces that do not overlap.
class Edits {
 public:
  void replace(Span span, std::string by) { edits_.emplace_back(span, std::move(by)); }
  std::string applied(std::string_view text) {
    std::ranges::sort(edits_, {}, [](const auto& each) { return each.first.begin; });
    std::string out;
    std::size_t at = 0;
    for (const auto& [span, by] : edits_) {
      out += text.substr(at, span.begin - at);
      out += by;
      at = span.end;
    }
    out += text.substr(at);
    return out;
  }

 private:
  std::vector<std::pair<Span, std::string>> edits_;
};

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::ranges::find(list, text) != list.end();
}

void change_block(std::string_view text, const SeedLines& seeds,
                  const std::vector<std::string>& missing, const std::vector<std::string>& remove,
                  Edits& edits) {
  for (const auto& item : seeds.items) {
    if (contains(remove, item.text)) {
      edits.replace(item.line, {});
    }
  }
  const auto& last = seeds.items.back();
  const auto line = last.line.of(text);
  const bool ends = line.ends_with('\n');
  const std::string_view newline = line.ends_with("\r\n") ? "\r\n" : "\n";
  std::string added;
  for (const auto& each : missing) {
    added += fmt::format("{}{}{}{}{}{}", ends ? "" : newline,
                         text.substr(last.line.begin, last.raw.begin - last.line.begin), last.quote,
                         each, last.quote, ends ? newline : "");
  }
  edits.replace({last.line.end, last.line.end}, std::move(added));
}

void change_commas(std::string_view text, const SeedLines& seeds,
                   const std::vector<std::string>& missing, const std::vector<std::string>& remove,
                   Edits& edits) {
  const auto& items = seeds.items;
  // What is between two of them, where there are two.
  const std::string between =
      items.size() < 2 ? std::string(",")
                       : std::string(Span{items[0].raw.end, items[1].raw.begin}.of(text));
  std::vector<std::string> kept;
  for (const auto& item : items) {
    if (!contains(remove, item.text)) {
      kept.emplace_back(item.raw.of(text));
    }
  }
  for (const auto& each : missing) {
    kept.push_back(items.back().quote + each + items.back().quote);
  }
  std::string out;
  for (const auto& each : kept) {
    out += out.empty() ? each : between + each;
  }
  edits.replace({items.front().raw.begin, items.back().raw.end}, std::move(out));
}

}  // namespace

Result<ClusterLines> read_cluster_lines(std::string_view text) {
  VERGER_TRY(const auto found, find_lines(text));
  ClusterLines out;
  VERGER_TRY(out.size, size_of(found));
  out.has_seeds = found.seeds.has_value();
  for (const auto& item : found.seeds ? found.seeds->items : std::vector<Item>()) {
    out.seeds.push_back(item.text);
  }
  return out;
}

Result<std::string> change_cluster_lines(std::string_view text, const ClusterLinesChange& change) {
  VERGER_TRY(const auto found, find_lines(text));
  VERGER_TRY(const auto size, size_of(found));
  if (size != change.from) {
    return Error{Errc::kConflict,
                 fmt::format("ClusterSize is {} in the file, not {}", size, change.from)};
  }
  Edits edits;
  const auto& old = *found.size;
  edits.replace(old.raw, old.quote + std::to_string(change.to) + old.quote);
  auto expected = ClusterLines{.size = change.to, .has_seeds = found.seeds.has_value()};
  if (found.seeds) {
    std::vector<std::string> had;
    for (const auto& item : found.seeds->items) {
      had.push_back(item.text);
      if (!contains(change.remove_seeds, item.text)) {
        expected.seeds.push_back(item.text);
      }
    }
    std::vector<std::string> missing;
    for (const auto& each : change.add_seeds) {
      if (!contains(had, each)) {
        missing.push_back(each);
      }
    }
    expected.seeds.insert(expected.seeds.end(), missing.begin(), missing.end());
    if (expected.seeds.empty()) {
      return Error{Errc::kUnsupported, "GossipSeed would name no node"};
    }
    if (expected.seeds != had) {
      (found.seeds->form == ListForm::kBlock ? change_block : change_commas)(
          text, *found.seeds, missing, change.remove_seeds, edits);
    }
  }
  auto out = edits.applied(text);
  const auto again = read_cluster_lines(out);
  if (!again || again->size != expected.size || again->seeds != expected.seeds) {
    return Error{Errc::kUnsupported, "the changed file would not say what it should"};
  }
  return out;
}

}  // namespace verger::external
