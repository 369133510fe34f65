#pragma once

#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/log.h"

namespace verger::test {

/// Keeps all that is logged: a line for each message, with its fields.
class KeptLog final : public Log {
 public:
  void write(LogLevel /*level*/, std::string_view message,
             std::span<const LogField> fields) override {
    text += message;
    for (const auto& field : fields) {
      text += fmt::format(" {}={}", field.name, field.value);
    }
    text += '\n';
  }
  std::string text;
};

}  // namespace verger::test
