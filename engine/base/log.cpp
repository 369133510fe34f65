#include "engine/base/log.h"

namespace verger {
namespace {
class NullLog final : public Log {
 public:
  void write(LogLevel, std::string_view, std::span<const LogField>) override {}
};
}  // namespace

Log& null_log() {
  static NullLog log;
  return log;
}
}  // namespace verger
