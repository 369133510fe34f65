#include "engine/streams/detail/lenient_json.h"

#include "engine/base/utf8.h"
#include "engine/streams/detail/json_text.h"

namespace verger::streams::detail {
namespace {

constexpr std::size_t kMaxDepth = 64;

}  // namespace

LenientJsonReader::LenientJsonReader(ByteView text) : input_(as_text(text)) {
  if (input_.starts_with("\xEF\xBB\xBF")) {
    input_.remove_prefix(3);
  }
}

bool LenientJsonReader::fail() {
  state_ = State::kFailed;
  token_ = JsonToken::kNone;
  return false;
}

char LenientJsonReader::peek(std::size_t ahead) const {
  return at_ + ahead < input_.size() ? input_[at_ + ahead] : '\0';
}

std::size_t LenientJsonReader::space_length() const {
  if (at_end()) {
    return 0;
  }
  const char c = input_[at_];
  if (c == '\0' || c == ' ' || (c >= '\t' && c <= '\r')) {
    return 1;  // a zero character counts as nothing, as in the server's reader
  }
  if (static_cast<unsigned char>(c) < 0x80) {
    return 0;
  }
  const auto point = json_text::decode(input_.substr(at_));
  return json_text::is_wide_space(point.value) ? point.length : 0;
}

void LenientJsonReader::skip_space() {
  for (auto length = space_length(); length != 0; length = space_length()) {
    at_ += length;
  }
}

bool LenientJsonReader::set(JsonToken token) {
  token_ = token;
  state_ = State::kPostValue;
  return true;
}

bool LenientJsonReader::open(JsonToken token, bool is_object) {
  if (open_.size() >= kMaxDepth) {
    return fail();
  }
  ++at_;
  open_.push_back(is_object);
  token_ = token;
  state_ = is_object ? State::kObject : State::kValue;
  return true;
}

bool LenientJsonReader::close(JsonToken token, bool is_object) {
  if (open_.empty() || open_.back() != is_object) {
    return fail();
  }
  ++at_;
  open_.pop_back();
  token_ = token;
  state_ = open_.empty() ? State::kFinished : State::kPostValue;
  return true;
}

void LenientJsonReader::after_comma() {
  state_ = open_.empty() ? State::kFinished : open_.back() ? State::kObject : State::kValue;
}

bool LenientJsonReader::read() {
  for (;;) {
    switch (state_) {
      case State::kStart:
      case State::kValue:
        return parse_value();
      case State::kObject:
        return parse_object();
      case State::kPostValue:
        switch (parse_post_value()) {
          case Step::kToken:
            return true;
          case Step::kEnd:
            return false;
          case Step::kAgain:
            break;
        }
        break;
      case State::kFinished:
      case State::kFailed:
        return fail();
    }
  }
}

bool LenientJsonReader::skip_value() {
  if (token_ != JsonToken::kStartObject && token_ != JsonToken::kStartArray) {
    // A closing bracket or a name is no value.
    return token_ != JsonToken::kEndObject && token_ != JsonToken::kEndArray &&
           token_ != JsonToken::kPropertyName && token_ != JsonToken::kNone;
  }
  const auto depth = open_.size();
  while (open_.size() >= depth) {
    if (!read()) {
      return false;
    }
  }
  return true;
}

bool LenientJsonReader::only_comments_follow() {
  if (state_ != State::kFinished) {
    return false;
  }
  for (skip_space(); !at_end(); skip_space()) {
    if (peek() != '/' || !parse_comment()) {
      return false;
    }
  }
  return true;
}

bool LenientJsonReader::parse_value() {
  skip_space();
  if (at_end()) {
    return fail();
  }
  const char c = peek();
  switch (c) {
    case '"':
    case '\'':
      return parse_string(c) && set(JsonToken::kString);
    case 't':
      return parse_word("true", JsonToken::kBoolean);
    case 'f':
      return parse_word("false", JsonToken::kBoolean);
    case 'n':
      return parse_word("null", JsonToken::kNull);
    case 'u':
      return parse_word("undefined", JsonToken::kUndefined);
    case 'N':
      return parse_word("NaN", JsonToken::kFloat);
    case 'I':
      return parse_word("Infinity", JsonToken::kFloat);
    case '/':
      return parse_comment();
    case '{':
      return open(JsonToken::kStartObject, true);
    case '[':
      return open(JsonToken::kStartArray, false);
    case ']':
      return close(JsonToken::kEndArray, false);
    case ',':
      return set(JsonToken::kUndefined);  // the comma itself is taken by the next call
    case '-':
      if (peek(1) == 'I') {
        return parse_word("-Infinity", JsonToken::kFloat);
      }
      return parse_number();
    default:
      return json_text::is_digit(c) || c == '.' ? parse_number() : fail();
  }
}

bool LenientJsonReader::parse_object() {
  skip_space();
  if (at_end()) {
    return fail();
  }
  if (peek() == '}') {
    return close(JsonToken::kEndObject, true);
  }
  return peek() == '/' ? parse_comment() : parse_property();
}

LenientJsonReader::Step LenientJsonReader::parse_post_value() {
  skip_space();
  if (at_end()) {
    fail();
    return Step::kEnd;
  }
  bool good = false;
  switch (peek()) {
    case '}':
      good = close(JsonToken::kEndObject, true);
      break;
    case ']':
      good = close(JsonToken::kEndArray, false);
      break;
    case '/':
      good = parse_comment();
      break;
    case ',':
      ++at_;
      after_comma();
      return Step::kAgain;
    default:
      fail();
  }
  return good ? Step::kToken : Step::kEnd;
}

bool LenientJsonReader::parse_property() {
  if (peek() == '"' || peek() == '\'') {
    if (!parse_string(peek())) {
      return false;
    }
  } else {
    text_.clear();
    for (;;) {
      if (at_end()) {
        return fail();
      }
      const char c = peek();
      const auto point = json_text::decode(input_.substr(at_));
      const bool name_character = json_text::is_digit(c) || (c >= 'a' && c <= 'z') ||
                                  (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
                                  (point.value >= 0x80 && json_text::is_wide_letter(point.value));
      if (name_character) {
        text_.append(input_.substr(at_, point.length));
        at_ += point.length;
      } else if (!text_.empty() && c != '\0' && (c == ':' || space_length() != 0)) {
        break;
      } else {
        return fail();
      }
    }
  }
  skip_space();
  if (peek() != ':') {
    return fail();
  }
  ++at_;
  token_ = JsonToken::kPropertyName;
  state_ = State::kValue;
  return true;
}

bool LenientJsonReader::parse_string(char quote) {
  ++at_;
  text_.clear();
  high_surrogate_ = 0;
  for (;;) {
    if (at_end()) {
      return fail();
    }
    const char c = input_[at_++];
    if (c == '\\') {
      if (!parse_escape()) {
        return fail();
      }
      continue;
    }
    if (high_surrogate_ != 0) {
      append_utf8(text_, 0xFFFD);
      high_surrogate_ = 0;
    }
    if (c == quote) {
      return true;
    }
    text_.push_back(c);
  }
}

bool LenientJsonReader::parse_escape() {
  if (at_end()) {
    return false;
  }
  const char c = input_[at_++];
  if (c == 'u') {
    return parse_unicode();
  }
  if (high_surrogate_ != 0) {
    append_utf8(text_, 0xFFFD);
    high_surrogate_ = 0;
  }
  switch (c) {
    case 'b':
      text_.push_back('\b');
      return true;
    case 't':
      text_.push_back('\t');
      return true;
    case 'n':
      text_.push_back('\n');
      return true;
    case 'f':
      text_.push_back('\f');
      return true;
    case 'r':
      text_.push_back('\r');
      return true;
    case '\\':
    case '"':
    case '\'':
    case '/':
      text_.push_back(c);
      return true;
    default:
      return false;
  }
}

bool LenientJsonReader::parse_unicode() {
  if (input_.size() - at_ < 4) {
    return false;
  }
  const auto value = json_text::parse_based(input_.substr(at_, 4), 16);
  if (!value) {
    return false;
  }
  at_ += 4;
  const auto unit = static_cast<std::uint32_t>(*value);
  if (unit >= 0xDC00 && unit <= 0xDFFF) {
    append_utf8(text_, high_surrogate_ == 0
                           ? 0xFFFD
                           : 0x10000 + ((high_surrogate_ - 0xD800) << 10U) + (unit - 0xDC00));
    high_surrogate_ = 0;
    return true;
  }
  if (high_surrogate_ != 0) {
    append_utf8(text_, 0xFFFD);
    high_surrogate_ = 0;
  }
  if (unit >= 0xD800 && unit <= 0xDBFF) {
    high_surrogate_ = unit;
  } else {
    append_utf8(text_, unit);
  }
  return true;
}

bool LenientJsonReader::parse_number() {
  const auto from = at_;
  while (!at_end()) {
    const char c = peek();
    if (json_text::digit_value(c) < 16 || c == '-' || c == '+' || c == 'x' || c == 'X' ||
        c == '.') {
      ++at_;
    } else if (c == ',' || c == '}' || c == ']' || c == ')' || c == '/' ||
               (c != '\0' && space_length() != 0)) {
      break;
    } else {
      return fail();
    }
  }
  return set_number(input_.substr(from, at_ - from));
}

bool LenientJsonReader::set_number(std::string_view digits) {
  const auto number = json_text::read_number(digits);
  integer_ = number.integer;
  switch (number.kind) {
    case json_text::Number::Kind::kInteger:
      return set(JsonToken::kInteger);
    case json_text::Number::Kind::kBigInteger:
      return set(JsonToken::kBigInteger);
    case json_text::Number::Kind::kFloat:
      return set(JsonToken::kFloat);
    case json_text::Number::Kind::kNone:
      return fail();
  }
  return fail();
}

bool LenientJsonReader::parse_comment() {
  const bool block = peek(1) == '*';
  if (!block && peek(1) != '/') {
    return fail();
  }
  at_ += 2;
  if (block) {
    const auto end = input_.find("*/", at_);
    if (end == std::string_view::npos) {
      return fail();
    }
    at_ = end + 2;
  } else {
    while (!at_end() && peek() != '\r' && peek() != '\n') {
      ++at_;
    }
  }
  token_ = JsonToken::kComment;  // the state stays: the next call continues where this one began
  return true;
}

bool LenientJsonReader::parse_word(std::string_view word, JsonToken token) {
  if (!input_.substr(at_).starts_with(word)) {
    return fail();
  }
  at_ += word.size();
  const char c = peek();
  const bool comment = c == '/' && (peek(1) == '/' || peek(1) == '*');
  const bool ends = at_end() || c == ',' || c == '}' || c == ']' || comment || space_length() != 0;
  return ends ? set(token) : fail();
}

}  // namespace verger::streams::detail
