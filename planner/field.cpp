#include "planner/field.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace verger::planner {

Field Field::between(std::int64_t least, std::int64_t most) && {
  low = least;
  high = most;
  return std::move(*this);
}
Field Field::length() && {
  type = Type::kMilliseconds;
  return std::move(*this);
}
Field Field::size() && {
  type = Type::kBytes;
  return std::move(*this);
}
Field Field::accepted() && {
  request = Request::kAccepted;
  return std::move(*this);
}
Field Field::shown() && {
  request = Request::kShown;
  return std::move(*this);
}
Field Field::later() && {
  always = false;
  return std::move(*this);
}

std::string values_of(const Field& field) {
  switch (field.type) {
    case Field::Type::kBoolean:
      return "true or false";
    case Field::Type::kInteger:
      return fmt::format("{} to {}", field.low, field.high);
    case Field::Type::kChoice:
      return fmt::format("{}", fmt::join(field.choices, ", "));
    case Field::Type::kText:
      return "a text";
    case Field::Type::kMilliseconds:
      return "a length of time, such as 90m";
    case Field::Type::kBytes:
      return "a size, such as 16MiB";
    case Field::Type::kQueries:
      return "a list of {name, url, query, at_least, at_most}";
  }
  return "";
}

std::string api_name(const Field& field) {
  std::string out;
  for (const char c : field.name) {
    if (c >= 'A' && c <= 'Z') {
      out += '_';
      out += static_cast<char>(c - 'A' + 'a');
    } else {
      out += c;
    }
  }
  return out;
}

std::string_view section_of(const Field& field) {
  const auto dot = field.place.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : field.place.substr(0, dot);
}
std::string_view key_of(const Field& field) {
  const auto dot = field.place.rfind('.');
  return dot == std::string_view::npos ? field.place : field.place.substr(dot + 1);
}

}  // namespace verger::planner
