#include "controller/cli/size_option.h"

#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

namespace verger::cli {

namespace {

/// Replaces a size by its number of bytes; the text of an error, or empty.
/// Whether it takes the text, which then is a plain number. Its own texts of refusal list units
/// without saying what is expected.
bool takes(const CLI::Validator& units, std::string& text) {
  try {
    return units(text).empty();
  } catch (const CLI::ValidationError&) {
    return false;
  }
}

std::string into_bytes(std::string& text) {
  if (text.starts_with('-')) {
    return fmt::format("Value {} is less than 0", text);
  }
  const auto typed = text;
  // Refuses a text that is no size, and a product that is too large.
  if (takes(CLI::AsSizeValue(/*kb_is_1000=*/false), text)) {
    return {};
  }
  return fmt::format(
      "\"{}\" is no size; it takes a whole number of bytes or one with a unit, such as 4096, "
      "250KiB, 20MiB, 2GiB",
      typed);
}

std::string into_milliseconds(std::string& text) {
  if (text.starts_with('-')) {
    return fmt::format("Value {} is less than 0", text);
  }
  const auto typed = text;
  const CLI::AsNumberWithUnit units(std::map<std::string, std::int64_t>{
      {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}});
  if (takes(units, text)) {
    return {};
  }
  return fmt::format(
      "\"{}\" is no length of time; it takes a whole number of milliseconds or one with a unit, "
      "such as 20000, 20s, 10m",
      typed);
}

}  // namespace

void take_size(CLI::Option& option) {
  option.type_name("SIZE")->transform(CLI::Validator(into_bytes, ""));
}

void take_milliseconds(CLI::Option& option) {
  option.type_name("LENGTH")->transform(CLI::Validator(into_milliseconds, ""));
}

}  // namespace verger::cli
