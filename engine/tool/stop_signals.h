#pragma once

#include <atomic>
#include <csignal>

#include "engine/base/result.h"

namespace verger::tool {

/// While it lives, SIGINT and SIGTERM make the running command stop instead of ending the
/// process. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  static bool requested();
  /// kCancelled once a stop was requested, from a command that changes nothing.
  static Result<void> check();

  /// While it lives, the signal sets `flag`, too, at once.
  class Forward {
   public:
    explicit Forward(std::atomic<bool>& flag);
    ~Forward();
    Forward(const Forward&) = delete;
    Forward& operator=(const Forward&) = delete;
  };

 private:
  struct sigaction old_interrupt_{};
  struct sigaction old_terminate_{};
};

}  // namespace verger::tool
