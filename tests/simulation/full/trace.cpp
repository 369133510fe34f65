#include "tests/simulation/full/trace.h"

#include <array>
#include <cstring>

namespace verger::sim {

void Trace::mix(std::string_view bytes) {
  for (const char c : bytes) {
    hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  hash_ = (hash_ ^ 0xffU) * 1099511628211ULL;
}

void Trace::add(Monotonic at, std::string_view who, std::string_view what) {
  std::array<char, sizeof(std::int64_t)> time{};
  const std::int64_t count = at.count();
  std::memcpy(time.data(), &count, sizeof(count));
  mix({time.data(), time.size()});
  mix(who);
  mix(what);
  ++lines_;
  note(at, who, what);
}

void Trace::note(Monotonic at, std::string_view who, std::string_view what) {
  if (out_ != nullptr) {
    *out_ << fmt::format("{:10.4f} {:<2} {}\n", std::chrono::duration<double>(at).count(), who,
                         what);
  }
}

void TraceLog::write(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  if (level == LogLevel::kDebug && !trace_.printing()) {
    return;
  }
  std::string text(message);
  for (const auto& field : fields) {
    text += fmt::format(" {}={}", field.name, field.value);
  }
  if (level == LogLevel::kDebug) {
    trace_.note(clock_.monotonic(), who_, text);
  } else {
    trace_.add(clock_.monotonic(), who_, text);
  }
}

}  // namespace verger::sim
