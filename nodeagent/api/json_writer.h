#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace verger::api {

/// Writes JSON straight into text, for what is said to many all the time: a tenth of the work of a
/// tree of nlohmann's values. Members come in the order in which they are written. As with
/// to_text(), bytes that are not UTF-8 are replaced.
class JsonWriter {
 public:
  explicit JsonWriter(std::size_t expected_size = 256) { text_.reserve(expected_size); }

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_list() { return open('['); }
  JsonWriter& end_list() { return close(']'); }

  /// Of the member whose value is written next. Plain: nothing in it needs an escape.
  JsonWriter& name(std::string_view plain) {
    separate();
    text_ += '"';
    text_ += plain;
    text_ += "\":";
    return *this;
  }

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth) {
    separate();
    text_ += truth ? "true" : "false";
    return *this;
  }
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  JsonWriter& value(T number) {
    separate();
    const fmt::format_int digits(number);
    text_.append(digits.data(), digits.size());
    return *this;
  }
  /// JSON that the caller holds as text; what is not JSON goes out as a string.
  JsonWriter& embedded(std::string_view json);
  /// The members of an object that the caller holds as text; none where it is no object.
  JsonWriter& members_of(std::string_view object);

  template <class T>
  JsonWriter& member(std::string_view plain_name, const T& what) {
    return name(plain_name).value(what);
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket) {
    separate();
    text_ += bracket;
    return *this;
  }
  JsonWriter& close(char bracket) {
    text_ += bracket;
    return *this;
  }
  /// A comma, where something stands before in the same object or list.
  void separate() {
    if (!text_.empty() && text_.back() != '{' && text_.back() != '[' && text_.back() != ':') {
      text_ += ',';
    }
  }

  std::string text_;
};

}  // namespace verger::api
