#include "engine/logging/spdlog_log.h"

#include <chrono>
#include <exception>
#include <spdlog/logger.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/utf8.h"

namespace verger {
namespace {

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "info";
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else if (length == 0) {
      out += "\\ufffd";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

/// A name without what would end it, or the line.
void append_key(std::string& out, std::string_view name) {
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte <= 0x20 || byte >= 0x7f || c == '=' || c == '"' || c == '\\' ? '_' : c;
  }
}

bool is_plain(std::string_view value) {
  for (std::string_view rest = value; !rest.empty();) {
    const char c = rest.front();
    const std::size_t length = utf8_length(rest);
    if (length == 0 || static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '"' ||
        c == '\\' || c == '=') {
      return false;
    }
    rest.remove_prefix(length);
  }
  return !value.empty();
}

class SpdlogLog final : public Log {
 public:
  SpdlogLog(std::string program, bool json, std::shared_ptr<spdlog::logger> logger)
      : program_(std::move(program)), json_(json), logger_(std::move(logger)) {}

  void write(LogLevel level, std::string_view message, std::span<const LogField> fields) override {
    const auto severity = spdlog_level(level);
    if (!logger_->should_log(severity)) {
      return;
    }
    std::string line;
    if (json_) {
      line = detail::json_line(format_ticks(system_clock().now()), name_of(level), program_,
                               message, fields);
    } else {
      line = detail::text_line(message, fields);
    }
    logger_->log(severity, spdlog::string_view_t(line.data(), line.size()));
  }

 private:
  std::string program_;
  bool json_;
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace

namespace detail {

std::string text_line(std::string_view message, std::span<const LogField> fields) {
  std::string line = "msg=";
  // Always quoted: a message is words, and may hold what a peer or a file said.
  append_quoted(line, message);
  for (const auto& field : fields) {
    line += ' ';
    append_key(line, field.name);
    line += '=';
    if (is_plain(field.value)) {
      line += field.value;
    } else {
      append_quoted(line, field.value);
    }
  }
  return line;
}

std::string json_line(std::string_view time, std::string_view level, std::string_view program,
                      std::string_view message, std::span<const LogField> fields) {
  std::string line = "{";
  const auto add = [&](std::string_view name, std::string_view value) {
    if (line.size() > 1) {
      line += ',';
    }
    append_quoted(line, name);
    line += ':';
    append_quoted(line, value);
  };
  add("time", time);
  add("level", level);
  add("program", program);
  add("message", message);
  for (const auto& field : fields) {
    add(field.name, field.value);
  }
  line += '}';
  return line;
}

}  // namespace detail

Result<std::unique_ptr<Log>> make_log(const std::string& program, const LogOptions& options) {
  try {
    std::vector<spdlog::sink_ptr> sinks;
    if (options.to_stderr) {
      sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    }
    if (!options.file.empty()) {
      sinks.push_back(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
          options.file.string(), options.file_size_max, options.files_kept));
    }
    auto logger = std::make_shared<spdlog::logger>(program, sinks.begin(), sinks.end());
    logger->set_level(spdlog_level(options.level));
    logger->flush_on(spdlog::level::debug);
    if (options.json) {
      logger->set_pattern("%v");
    } else {
      logger->set_pattern("time=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", spdlog::pattern_time_type::utc);
    }
    logger->set_error_handler([](const std::string&) {});  // the disk is full: nowhere to tell
    return std::make_unique<SpdlogLog>(program, options.json, std::move(logger));
  } catch (const std::exception& failure) {
    return Error{Errc::kIo, fmt::format("{}: cannot open the log file: {}", options.file.string(),
                                        failure.what())};
  }
}

Result<LogLevel> parse_log_level(std::string_view name) {
  for (const auto level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (name == name_of(level)) {
      return level;
    }
  }
  return Error{Errc::kInvalidArgument,
               fmt::format("\"{}\" is not a log level (debug, info, warning or error)", name)};
}

}  // namespace verger
