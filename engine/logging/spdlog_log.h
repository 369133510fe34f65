#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "engine/base/log.h"
#include "engine/base/result.h"

namespace verger {

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  /// One JSON object per line: time, level, program, message, then the fields; otherwise
  /// logfmt: "time=… level=… msg="…" key=value …".
  bool json = false;
  /// Written beside stderr when not empty; its directory must exist.
  std::filesystem::path file;
  /// The file is renamed to file.1, file.2, … when it reaches this size.
  std::size_t file_size_max = std::size_t{64} << 20U;
  std::size_t files_kept = 5;
  bool to_stderr = true;
};

/// The log of a program, for `main` files only; all others get a Log&. Each line is written
/// before write() returns; a line that cannot be written is dropped. Error: kIo, the file cannot be
/// opened.
Result<std::unique_ptr<Log>> make_log(const std::string& program, const LogOptions& options);

/// "debug", "info", "warning" or "error". Error: kInvalidArgument.
Result<LogLevel> parse_log_level(std::string_view name);

namespace detail {
/// The line without time and level, in logfmt: message and fields. Values with blanks, quotes or
/// control characters are quoted as in JSON, so that a line stays one line.
std::string text_line(std::string_view message, std::span<const LogField> fields);
/// The whole line as a JSON object. Bytes that are no UTF-8 come out as U+FFFD.
std::string json_line(std::string_view time, std::string_view level, std::string_view program,
                      std::string_view message, std::span<const LogField> fields);
}  // namespace detail

}  // namespace verger
