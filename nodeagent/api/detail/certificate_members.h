#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nodeagent/api/json_fields.h"
#include "nodeagent/api/json_writer.h"

/// What the codecs of agent_certificates.h share.
namespace verger::api {

/// Writes a member where it says something.
template <class T>
inline void known(JsonWriter& out, std::string_view name, const T& value) {
  if (value != T{}) {
    out.member(name, value);
  }
}
template <class T>
inline void known(JsonWriter& out, std::string_view name, const std::optional<T>& value) {
  if (value) {
    out.member(name, *value);
  }
}

template <class T>
inline void read_known(Fields& fields, std::string_view name, std::optional<T>& into) {
  if (fields.has(name)) {
    fields.read(name, into.emplace());
  }
}

inline void write_names(JsonWriter& out, std::string_view name,
                        const std::vector<std::string>& names) {
  if (names.empty()) {
    return;
  }
  out.name(name).begin_list();
  for (const auto& each : names) {
    out.value(each);
  }
  out.end_list();
}

inline void read_names(Fields& fields, std::string_view name, std::vector<std::string>& into) {
  fields.each(name, [&](JsonView element, const std::string& where) -> Result<void> {
    if (!element.is_string()) {
      return Error{Errc::kCorruption, where + ": a string was expected"};
    }
    into.push_back(element.string());
    return {};
  });
}

/// Calls `read(JsonView, where) -> Result<T>` for the elements of an array.
template <class T, class Read>
inline void read_list(Fields& fields, std::string_view name, std::vector<T>& into, Read read) {
  fields.each(name, [&](JsonView element, const std::string& where) -> Result<void> {
    VERGER_TRY(auto value, read(element, where));
    into.push_back(std::move(value));
    return {};
  });
}

template <class T, class Read>
inline void read_member(Fields& fields, std::string_view name, T& into, Read read) {
  if (const auto value = fields.find(name)) {
    if (auto got = read(*value, std::string(name))) {
      into = *std::move(got);
    } else {
      fields.take(std::move(got).error());
    }
  }
}

template <class T, class Parse>
inline void read_word(Fields& fields, std::string_view name, T& into, Parse parse) {
  std::string text;
  fields.read(name, text);
  if (text.empty()) {
    return;
  }
  if (const auto value = parse(text)) {
    into = *value;
  } else {
    fields.wrong(name, value.error().message);
  }
}

/// Reads a document by `read(JsonView, what) -> Result<T>`. What a caller sent is its mistake.
template <class Read>
auto parse_as(std::string_view text, const std::string& what, Errc code, Read read)
    -> decltype(read(std::declval<JsonView>(), what)) {
  const auto document = JsonDocument::parse(text, what);
  if (!document) {
    return Error{code, document.error().message};
  }
  auto out = read(document->root(), what);
  if (!out) {
    return Error{code, out.error().message};
  }
  return out;
}

}  // namespace verger::api
