#include "engine/tool/stop_signals.h"

namespace verger::tool {
namespace {

volatile std::sig_atomic_t stop_requested = 0;
std::atomic<std::atomic<bool>*> forwarded_to = nullptr;
static_assert(std::atomic<std::atomic<bool>*>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

void request_stop(int /*signal*/) {
  stop_requested = 1;
  if (auto* flag = forwarded_to.load()) {
    flag->store(true);
  }
}

}  // namespace

StopSignals::StopSignals() {
  stop_requested = 0;
  struct sigaction action{};
  action.sa_handler = &request_stop;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
}

StopSignals::Forward::Forward(std::atomic<bool>& flag) {
  forwarded_to.store(&flag);
  if (requested()) {
    flag.store(true);
  }
}
StopSignals::Forward::~Forward() { forwarded_to.store(nullptr); }

bool StopSignals::requested() { return stop_requested != 0; }

Result<void> StopSignals::check() {
  if (requested()) {
    return Error{Errc::kCancelled, "stopped by a signal; nothing was changed"};
  }
  return {};
}

}  // namespace verger::tool
