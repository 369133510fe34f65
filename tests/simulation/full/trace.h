#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <ostream>
#include <string_view>

#include "engine/base/clock.h"
#include "engine/base/log.h"

namespace verger::sim {

/// Everything that happened in a run, as one number: the same seed must give the same one. Printed
/// as well, where it is to be read.
class Trace {
 public:
  /// `out` may be null.
  explicit Trace(std::ostream* out) : out_(out) {}
  void add(Monotonic at, std::string_view who, std::string_view what);
  /// For what is only of interest to a reader; not part of the hash.
  void note(Monotonic at, std::string_view who, std::string_view what);
  [[nodiscard]] bool printing() const { return out_ != nullptr; }
  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] std::uint64_t lines() const { return lines_; }

 private:
  void mix(std::string_view bytes);
  std::ostream* out_;
  std::uint64_t hash_ = 14695981039346656037ULL;
  std::uint64_t lines_ = 0;
};

/// The log of one program: into the trace, with virtual time.
class TraceLog final : public Log {
 public:
  TraceLog(Trace& trace, Clock& clock, std::string_view who)
      : trace_(trace), clock_(clock), who_(who) {}
  void write(LogLevel level, std::string_view message, std::span<const LogField> fields) override;

 private:
  Trace& trace_;
  Clock& clock_;
  std::string who_;
};

}  // namespace verger::sim
