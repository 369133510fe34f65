#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/bytes.h"

namespace verger::streams::detail {

enum class JsonToken : std::uint8_t {
  kNone,
  kStartObject,
  kEndObject,
  kStartArray,
  kEndArray,
  kPropertyName,
  kInteger,     ///< fits an i64
  kBigInteger,  ///< does not
  kFloat,
  kString,
  kBoolean,
  kNull,
  kUndefined,  ///< also the empty place before a comma
  kComment,
};

/// A pull reader that accepts what the server's JSON reader (Newtonsoft's JsonTextReader with its
/// defaults) accepts and stops where that one throws: single quotes, unquoted names, hexadecimal
/// and octal integers, comments as tokens, trailing commas. Reads bytes as UTF-8, a byte order mark
/// is skipped. Two rarities are refused although the server reads them: the `new Name(…)` form,
/// and text in UTF-16. Limits: 64 open containers.
class LenientJsonReader {
 public:
  explicit LenientJsonReader(ByteView text);

  /// False at the end of the text or at the first error: the caller treats both alike.
  bool read();
  /// Skips the value whose first token has just been read; false as read().
  bool skip_value();

  /// After the end of the outermost value: is there nothing but blanks and comments?
  bool only_comments_follow();

  JsonToken token() const { return token_; }
  std::int64_t integer() const { return integer_; }
  /// Of kString and kPropertyName.
  const std::string& text() const { return text_; }

 private:
  enum class State : std::uint8_t { kStart, kValue, kObject, kPostValue, kFinished, kFailed };
  enum class Step : std::uint8_t { kToken, kAgain, kEnd };

  bool fail();
  bool at_end() const { return at_ >= input_.size(); }
  char peek(std::size_t ahead = 0) const;
  /// Length in bytes of the white space at `at_`; 0 when there is none.
  std::size_t space_length() const;
  void skip_space();
  bool set(JsonToken token);
  bool open(JsonToken token, bool is_object);
  bool close(JsonToken token, bool is_object);
  void after_comma();

  bool parse_value();
  bool parse_object();
  Step parse_post_value();
  bool parse_property();
  bool parse_string(char quote);
  bool parse_escape();
  bool parse_unicode();
  bool parse_number();
  bool set_number(std::string_view digits);
  bool parse_comment();
  bool parse_word(std::string_view word, JsonToken token);

  std::string_view input_;
  std::size_t at_ = 0;
  State state_ = State::kStart;
  JsonToken token_ = JsonToken::kNone;
  std::int64_t integer_ = 0;
  std::string text_;
  std::uint32_t high_surrogate_ = 0;
  std::vector<bool> open_;  ///< true = object
};

}  // namespace verger::streams::detail
