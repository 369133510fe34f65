#pragma once

#include <csignal>

#include "engine/base/result.h"

namespace verger::tool {

/// While it lives, SIGINT and SIGTERM ask the running command to stop instead of ending the
/// process. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool requested();
  /// kCancelled once a stop was asked for, from a command that changes nothing.
  static Result<void> check();

 private:
  struct sigaction old_interrupt_{};
  struct sigaction old_terminate_{};
};

}  // namespace verger::tool
