#include "controller/cli/size_option.h"

#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

namespace verger::cli {

namespace {

/// Replaces a size by its number of bytes; the text of an error, or empty.
std::string into_bytes(std::string& text) {
  if (text.starts_with('-')) {
    return fmt::format("Value {} is less than 0", text);
  }
  const auto typed = text;
  try {
    // Throws for a text that is no size, and where the product is too large.
    if (CLI::AsSizeValue(/*kb_is_1000=*/false)(text).empty()) {
      return {};
    }
  } catch (const CLI::ValidationError&) {  // its text lists units without saying what is expected
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
  try {
    const CLI::AsNumberWithUnit units(std::map<std::string, std::int64_t>{
        {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}});
    if (units(text).empty()) {
      return {};
    }
  } catch (const CLI::ValidationError&) {  // as above
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
