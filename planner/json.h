#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace verger::planner {

/// A JSON value of the kinds that plans hold: no floating point, so that its text is canonical.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json, std::less<>>;

  Json() = default;
  Json(std::nullptr_t) {}                                    // NOLINT: values are meant to convert
  Json(bool value) : value_(value) {}                        // NOLINT
  Json(std::int64_t value) : value_(value) {}                // NOLINT
  Json(std::int32_t value) : value_(std::int64_t{value}) {}  // NOLINT
  Json(std::string value) : value_(std::move(value)) {}      // NOLINT
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT
  Json(const char* value) : value_(std::string(value)) {}       // NOLINT
  Json(Array value) : value_(std::move(value)) {}               // NOLINT
  Json(Object value) : value_(std::move(value)) {}              // NOLINT

  /// Canonical text: keys sorted by byte, no white space, shortest escapes, UTF-8 as it is.
  [[nodiscard]] std::string text() const;
  /// The same, appended.
  void write(std::string& out) const;

  [[nodiscard]] const bool* as_bool() const { return std::get_if<bool>(&value_); }
  [[nodiscard]] const std::int64_t* as_int() const { return std::get_if<std::int64_t>(&value_); }
  [[nodiscard]] const std::string* as_string() const { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const Array* as_array() const { return std::get_if<Array>(&value_); }
  [[nodiscard]] const Object* as_object() const { return std::get_if<Object>(&value_); }
  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::monostate>(value_); }

  friend bool operator==(const Json&, const Json&) = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, std::string, Array, Object> value_;
};

/// `text` in quotes, escaped; appended.
void append_json_quoted(std::string& out, std::string_view text);
void append_json_number(std::string& out, std::int64_t number);
/// `text` in quotes, escaped.
std::string json_quoted(std::string_view text);

}  // namespace verger::planner
