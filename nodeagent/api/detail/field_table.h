#pragma once

#include <algorithm>
#include <concepts>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/types.h"
#include "nodeagent/api/json_fields.h"
#include "nodeagent/api/json_writer.h"

/// Types whose JSON is a table: one row per member serves writer, reader and the list of names.
/// A type T has `constexpr auto rows_of(const T*)`, a tuple of rows, beside it. A member that has
/// its default is not written; missing ones keep it when they are read. With
/// `void check_rows(Fields&, const T&)` beside it, what was read is checked. An enum has
/// `constexpr auto words_of(const E*)`, an array with a word for each value.
namespace verger::api {

template <class T, class M>
struct FieldRow {
  std::string_view name;  ///< camelCase
  M T::* member;
  bool needed = false;  ///< always written, and an error where it is missing
};
template <class T, class M>
constexpr FieldRow<T, M> row(std::string_view name, M T::* member) {
  return {name, member, false};
}
template <class T, class M>
constexpr FieldRow<T, M> needed_row(std::string_view name, M T::* member) {
  return {name, member, true};
}

template <class T>
concept Tabled = requires(const T* type) { rows_of(type); };

template <class T>
concept Checked = requires(Fields& fields, const T& value) { check_rows(fields, value); };

template <class E>
concept Worded = std::is_enum_v<E> && requires(const E* type) { words_of(type); };

template <Worded E>
std::string_view word_of(E value) {
  static constexpr auto kWords = words_of(static_cast<const E*>(nullptr));
  return kWords.at(static_cast<std::size_t>(value));
}

/// Error: kInvalidArgument, with the words there are.
template <Worded E>
Result<E> parse_word(std::string_view text) {
  static constexpr auto kWords = words_of(static_cast<const E*>(nullptr));
  const auto* const found = std::ranges::find(kWords, text);
  if (found == kWords.end()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("one of {} was expected", fmt::join(kWords, ", "))};
  }
  return static_cast<E>(found - kWords.begin());
}

/// Calls `work(row)` for each row of T.
template <Tabled T, class Work>
constexpr void each_row(Work work) {
  std::apply([&](const auto&... row) { (work(row), ...); },
             rows_of(static_cast<const T*>(nullptr)));
}

template <Tabled T>
std::vector<std::string_view> member_names_of() {
  std::vector<std::string_view> out;
  each_row<T>([&](const auto& row) { out.push_back(row.name); });
  return out;
}

template <Tabled T>
void write_row_value(JsonWriter& out, const T& value);
template <class T>
void write_row_value(JsonWriter& out, const std::vector<T>& values);
inline void write_row_value(JsonWriter& out, Ticks time) { out.value(format_ticks(time)); }
inline void write_row_value(JsonWriter& out, const std::string& text) { out.value(text); }
template <std::integral T>
void write_row_value(JsonWriter& out, T number) {
  out.value(number);
}
template <Worded E>
void write_row_value(JsonWriter& out, E value) {
  out.value(word_of(value));
}
template <class T>
void write_row_value(JsonWriter& out, const std::optional<T>& value) {
  write_row_value(out, *value);  // one without a value has its default, and is not written
}

template <Tabled T>
void write_row_value(JsonWriter& out, const T& value) {
  const T fresh{};
  out.begin_object();
  each_row<T>([&](const auto& row) {
    if (row.needed || value.*row.member != fresh.*row.member) {
      out.name(row.name);
      write_row_value(out, value.*row.member);
    }
  });
  out.end_object();
}

template <class T>
void write_row_value(JsonWriter& out, const std::vector<T>& values) {
  out.begin_list();
  for (const auto& value : values) {
    write_row_value(out, value);
  }
  out.end_list();
}

template <Tabled T>
std::string text_of_rows(const T& value) {
  JsonWriter out;
  write_row_value(out, value);
  return out.take();
}

template <Tabled T>
Result<T> read_rows(JsonView value, const std::string& where);

template <class T>
void read_row(Fields& fields, std::string_view name, const std::string& where, T& into) {
  if constexpr (Tabled<T>) {
    if (const auto value = fields.find(name)) {
      if (auto read = read_rows<T>(*value, where + "." + std::string(name))) {
        into = *std::move(read);
      } else {
        fields.take(std::move(read).error());
      }
    }
  } else if constexpr (std::same_as<T, Ticks>) {
    std::string text;
    fields.read(name, text);
    if (const auto time = text.empty() ? Result<Ticks>(Ticks{}) : parse_ticks(text)) {
      into = *time;
    } else {
      fields.wrong(name, "a time was expected");
    }
  } else if constexpr (Worded<T>) {
    std::string text;
    fields.read(name, text);
    if (const auto value = text.empty() ? Result<T>(into) : parse_word<T>(text)) {
      into = *value;
    } else {
      fields.wrong(name, value.error().message);
    }
  } else {
    fields.read(name, into);
  }
}

template <class T>
void read_row(Fields& fields, std::string_view name, const std::string& where,
              std::optional<T>& into) {
  if (fields.has(name)) {
    read_row(fields, name, where, into.emplace());
  }
}

template <class T>
void read_row(Fields& fields, std::string_view name, const std::string& /*where*/,
              std::vector<T>& into) {
  fields.each(name, [&](JsonView element, const std::string& at) -> Result<void> {
    if constexpr (Tabled<T>) {
      VERGER_TRY(auto value, read_rows<T>(element, at));
      into.push_back(std::move(value));
    } else {
      static_assert(std::same_as<T, std::string>);
      if (!element.is_string()) {
        return Error{Errc::kCorruption, at + ": a string was expected"};
      }
      into.push_back(element.string());
    }
    return {};
  });
}

template <Tabled T>
Result<T> read_rows(JsonView value, const std::string& where) {
  T out;
  Fields fields(value, where);
  each_row<T>([&](const auto& row) {
    if (row.needed) {
      fields.require(row.name);
    }
    read_row(fields, row.name, where, out.*row.member);
  });
  if constexpr (Checked<T>) {
    check_rows(fields, out);
  }
  VERGER_RETURN_IF_ERROR(fields.result());
  return out;
}

/// A whole document. `code`: kCorruption of an answer, kInvalidArgument of a request.
template <Tabled T>
Result<T> parse_rows(std::string_view text, const std::string& what, Errc code) {
  const auto document = JsonDocument::parse(text, what);
  if (!document) {
    return Error{code, document.error().message};
  }
  auto out = read_rows<T>(document->root(), what);
  if (!out) {
    return Error{code, std::move(out).error().message};
  }
  return out;
}

}  // namespace verger::api
