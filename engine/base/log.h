#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace verger {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

/// A named value beside a log line, such as {"run", id}.
struct LogField {
  std::string_view name;
  std::string value;
};

/// Where programs write their log. Comes in through constructors. Safe from any thread.
class Log {
 public:
  virtual ~Log() = default;
  virtual void write(LogLevel level, std::string_view message,
                     std::span<const LogField> fields) = 0;

  void debug(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::kDebug, message, {fields.begin(), fields.size()});
  }
  void info(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::kInfo, message, {fields.begin(), fields.size()});
  }
  void warning(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::kWarning, message, {fields.begin(), fields.size()});
  }
  void error(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::kError, message, {fields.begin(), fields.size()});
  }
};

/// Writes nothing.
Log& null_log();

}  // namespace verger
