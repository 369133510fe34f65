#include "nodeagent/api/json_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <limits>

#include <nlohmann/json.hpp>

#include "engine/base/json_depth.h"
#include "engine/base/json_escape.h"
#include "engine/base/utf8.h"
#include "nodeagent/api/json_text.h"

namespace verger::api {

/// One pass over the text. Each read_...() begins at its value and leaves `at_` behind it; false:
/// it is no JSON.
class JsonDocument::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) { elements_.reserve(text.size() / 12 + 4); }

  bool read() {
    if (text_.starts_with("\xEF\xBB\xBF")) {
      at_ = 3;
    }
    skip_space();
    if (!read_value(0)) {
      return false;
    }
    skip_space();
    return at_ == text_.size();
  }

  std::vector<Element> take() { return std::move(elements_); }

 private:
  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] char here() const { return at_end() ? '\0' : text_[at_]; }

  void skip_space() {
    while (!at_end() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool take_char(char wanted) {
    if (at_end() || text_[at_] != wanted) {
      return false;
    }
    ++at_;
    return true;
  }

  bool read_value(std::size_t depth) {
    switch (here()) {
      case '{':
        return read_nested(Kind::kMap, '}', depth);
      case '[':
        return read_nested(Kind::kList, ']', depth);
      case '"':
        return read_string();
      case 't':
        return read_word("true", Kind::kTrue);
      case 'f':
        return read_word("false", Kind::kFalse);
      case 'n':
        return read_word("null", Kind::kNull);
      default:
        return read_number();
    }
  }

  bool read_nested(Kind kind, char close, std::size_t depth) {
    if (depth >= kMaxJsonDepth) {
      return false;
    }
    const auto index = elements_.size();
    elements_.push_back({.begin = place(at_), .kind = kind});
    ++at_;
    skip_space();
    std::size_t length = 0;
    while (here() != close) {
      if (length > 0) {
        if (!take_char(',')) {
          return false;
        }
        skip_space();
      }
      if (kind == Kind::kMap) {
        if (here() != '"' || !read_string()) {
          return false;
        }
        skip_space();
        if (!take_char(':')) {
          return false;
        }
        skip_space();
      }
      if (!read_value(depth + 1)) {
        return false;
      }
      skip_space();
      ++length;
    }
    ++at_;
    auto& element = elements_[index];
    element.end = place(at_);
    element.next = place(elements_.size());
    element.length = place(length);
    return true;
  }

  bool read_word(std::string_view word, Kind kind) {
    if (!text_.substr(at_).starts_with(word)) {
      return false;
    }
    add(kind, at_, at_ + word.size());
    at_ += word.size();
    return true;
  }

  bool skip_digits() {
    const auto before = at_;
    while (here() >= '0' && here() <= '9') {
      ++at_;
    }
    return at_ > before;
  }

  bool read_number() {
    const auto begin = at_;
    const bool negative = take_char('-');
    if (!take_char('0') && !skip_digits()) {
      return false;
    }
    bool whole = true;
    if (take_char('.')) {
      whole = false;
      if (!skip_digits()) {
        return false;
      }
    }
    if (here() == 'e' || here() == 'E') {
      whole = false;
      ++at_;
      if (here() == '+' || here() == '-') {
        ++at_;
      }
      if (!skip_digits()) {
        return false;
      }
    }
    const auto digits = text_.substr(begin, at_ - begin);
    constexpr std::size_t kAlwaysInRange = 18;  // digits, with a sign
    if (whole && digits.size() > kAlwaysInRange) {
      std::int64_t with_sign = 0;
      std::uint64_t without = 0;
      const auto* const end = digits.data() + digits.size();
      whole = (negative ? std::from_chars(digits.data(), end, with_sign).ec
                        : std::from_chars(digits.data(), end, without).ec) == std::errc{};
    }
    if (!whole && !std::isfinite(std::strtod(std::string(digits).c_str(), nullptr))) {
      return false;
    }
    add(whole ? Kind::kInteger : Kind::kFraction, begin, at_);
    return true;
  }

  bool read_string() {
    const auto begin = ++at_;
    bool escaped = false;
    for (;;) {
      at_ += plain_ascii_length(text_.substr(at_));
      if (at_end()) {
        return false;
      }
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        add(Kind::kString, begin, at_);
        elements_.back().escaped = escaped;
        ++at_;
        return true;
      }
      if (c < 0x20) {
        return false;
      }
      if (c == '\\') {
        escaped = true;
        if (!skip_escape()) {
          return false;
        }
      } else if (const auto length = utf8_length(text_.substr(at_)); length > 0) {
        at_ += length;
      } else {
        return false;
      }
    }
  }

  bool skip_escape() {
    ++at_;
    const char kind = here();
    ++at_;
    if (kind != 'u') {
      return kind != '\0' && std::string_view("\"\\/bfnrt").contains(kind);
    }
    const auto first = hex4();
    if (!first || (*first >= 0xDC00 && *first <= 0xDFFF)) {
      return false;
    }
    if (*first < 0xD800 || *first > 0xDBFF) {
      return true;
    }
    const auto second = take_char('\\') && take_char('u') ? hex4() : std::optional<std::uint32_t>();
    return second && *second >= 0xDC00 && *second <= 0xDFFF;
  }

  std::optional<std::uint32_t> hex4() {
    const auto digits = text_.substr(std::min(at_, text_.size()), 4);
    std::uint32_t value = 0;
    const auto* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
    if (digits.size() != 4 || error != std::errc{} || stop != end) {
      return std::nullopt;
    }
    at_ += 4;
    return value;
  }

  static Place place(std::size_t at) { return static_cast<Place>(at); }

  void add(Kind kind, std::size_t begin, std::size_t end) {
    elements_.push_back({.begin = place(begin),
                         .end = place(end),
                         .next = place(elements_.size() + 1),
                         .kind = kind});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Element> elements_;
};

Result<JsonDocument> JsonDocument::parse(std::string_view text, std::string_view what) {
  if (text.size() >= std::numeric_limits<Place>::max()) {
    return Error{Errc::kCorruption, fmt::format("{}: {} bytes of JSON", what, text.size())};
  }
  Parser parser(text);
  if (!parser.read()) {
    // Rare, and the other reader says where.
    auto parsed = parse_json(text, what, kMaxJsonDepth);
    return parsed ? Error{Errc::kCorruption, fmt::format("{}: not JSON", what)} : parsed.error();
  }
  JsonDocument document;
  document.text_ = text;
  document.elements_ = parser.take();
  return document;
}

JsonView JsonDocument::root() const { return {*this, 0}; }

std::string_view JsonView::text() const {
  const auto& value = element();
  const std::size_t quote = is_string() ? 1 : 0;
  return document_->text_.substr(value.begin - quote, value.end - value.begin + 2 * quote);
}

namespace {

/// Of four hexadecimal digits, which have been looked at.
std::uint32_t hex4_at(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  std::from_chars(text.data() + at, text.data() + at + 4, value, 16);
  return value;
}

/// Of a string that the parser has taken.
std::string without_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0;;) {
    const auto next = std::min(text.find('\\', at), text.size());
    out += text.substr(at, next - at);
    if (next == text.size()) {
      return out;
    }
    const char kind = text[next + 1];
    at = next + 2;
    if (kind != 'u') {
      constexpr std::string_view kLetters = "bfnrt";
      const auto letter = kLetters.find(kind);
      out += letter == std::string_view::npos ? kind : "\b\f\n\r\t"[letter];
      continue;
    }
    auto code = hex4_at(text, at);
    at += 4;
    if (code >= 0xD800 && code <= 0xDBFF) {
      code = 0x10000 + ((code - 0xD800) << 10U) + (hex4_at(text, at + 2) - 0xDC00);
      at += 6;
    }
    append_utf8(out, code);
  }
}

}  // namespace

std::string JsonView::string() const {
  const auto& value = element();
  const auto plain = document_->text_.substr(value.begin, value.end - value.begin);
  return value.escaped ? without_escapes(plain) : std::string(plain);
}

std::optional<std::int64_t> JsonView::signed_number() const {
  const auto digits = text();
  std::int64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::uint64_t> JsonView::unsigned_number() const {
  const auto digits = text();
  std::uint64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

std::optional<JsonView> JsonView::find(std::string_view name) const {
  std::optional<JsonView> found;
  if (!is_object()) {
    return found;
  }
  // Called for each member of each type: most differ in size, which is compared first.
  const auto* const elements = document_->elements_.data();
  const auto* const text = document_->text_.data();
  const auto end = elements[index_].next;
  for (auto at = index_ + 1; at < end; at = elements[at + 1].next) {
    const auto& key = elements[at];
    if (key.escaped ? JsonView(*document_, at).string() == name
                    : key.end - key.begin == name.size() &&
                          std::memcmp(text + key.begin, name.data(), name.size()) == 0) {
      found = JsonView(*document_, at + 1);
    }
  }
  return found;
}

// Names of one object have different lengths, or differ at their ends.
std::size_t JsonMembers::bucket_of(std::string_view name) {
  if (name.empty()) {
    return 0;
  }
  const std::size_t first = static_cast<unsigned char>(name.front());
  const std::size_t last = static_cast<unsigned char>(name.back());
  return (name.size() * 5 + first * 3 + last) % kBuckets;
}

JsonMembers::JsonMembers(JsonView object) : object_(object) {
  if (!object.is_object()) {
    return;
  }
  const auto& elements = object.document_->elements_;
  const auto text = object.document_->text_;
  members_.reserve(object.element().length);
  const auto first = static_cast<std::uint32_t>(object.index_ + 1);
  for (auto at = first; at < object.element().next; at = elements[at + 1].next) {
    const auto& key = elements[at];
    const auto bucket = key.escaped ? bucket_of(JsonView(*object.document_, at).string())
                                    : bucket_of(text.substr(key.begin, key.end - key.begin));
    members_.push_back({.key = at, .next = newest_[bucket]});
    newest_[bucket] = static_cast<std::uint32_t>(members_.size());
  }
}

std::optional<JsonView> JsonMembers::find(std::string_view name) const {
  const auto& document = *object_.document_;
  for (auto at = newest_[bucket_of(name)]; at != 0; at = members_[at - 1].next) {
    const auto key = members_[at - 1].key;
    const auto& element = document.elements_[key];
    if (element.escaped
            ? JsonView(document, key).string() == name
            : document.text_.substr(element.begin, element.end - element.begin) == name) {
      return JsonView(document, key + 1);
    }
  }
  return std::nullopt;
}

std::vector<JsonView> JsonView::names() const {
  std::vector<JsonView> out;
  if (is_object()) {
    out.reserve(element().length);
    const auto& elements = document_->elements_;
    for (auto at = index_ + 1; at < element().next; at = elements[at + 1].next) {
      out.push_back(JsonView(*document_, at));
    }
  }
  return out;
}

std::vector<JsonView> JsonView::values() const {
  std::vector<JsonView> out;
  if (is_array()) {
    out.reserve(element().length);
    for (auto at = index_ + 1; at < element().next; at = document_->elements_[at].next) {
      out.push_back(JsonView(*document_, at));
    }
  }
  return out;
}

}  // namespace verger::api
