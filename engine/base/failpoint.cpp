#include "engine/base/failpoint.h"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <string>
#include <sys/types.h>
#include <unistd.h>

#include "engine/base/unique_fd.h"

namespace verger {
namespace {

std::atomic<FailpointHook> installed_hook{nullptr};

/// What the environment demands of this process, read once.
class EnvironmentFailpoints {
 public:
  EnvironmentFailpoints() {
    // Read before any thread of ours changes the environment; none does.
    const char* wanted = std::getenv("VERGER_FAILPOINT");   // NOLINT(concurrency-mt-unsafe)
    const char* log = std::getenv("VERGER_FAILPOINT_LOG");  // NOLINT(concurrency-mt-unsafe)
    log_path_ = log != nullptr ? log : "";
    if (wanted != nullptr) {
      name_ = wanted;
      const auto colon = name_.rfind(':');
      if (colon != std::string::npos) {
        const char* end = name_.data() + name_.size();
        std::from_chars(name_.data() + colon + 1, end, countdown_);
        name_.resize(colon);
      }
    }
    active_ = !name_.empty() || !log_path_.empty();
  }

  void reached(std::string_view name) {
    if (!active_) {
      return;
    }
    const std::lock_guard lock(mutex_);
    countdown_ -= name == name_ && countdown_ > 0 ? 1 : 0;
    const bool dies = name == name_ && countdown_ == 0;
    // With a failpoint to die at, the log says that it was reached; without, it lists them all.
    if (!log_path_.empty() && (dies || (name_.empty() && seen_.emplace(name).second))) {
      append_to_log(name);
    }
    if (dies) {
      ::kill(::getpid(), SIGKILL);
      for (;;) {
        ::pause();
      }
    }
  }

 private:
  /// One write, so that lines of several processes do not mix. Not through FileSystem: this belongs
  /// to the test around the process, not to what is tested.
  void append_to_log(std::string_view name) const {
    const UniqueFd fd(::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    const std::string line = std::string(name) + "\n";
    while (fd.valid() && ::write(fd.get(), line.data(), line.size()) < 0 && errno == EINTR) {
    }
  }

  std::mutex mutex_;
  std::string name_;
  std::uint64_t countdown_ = 1;
  std::string log_path_;
  std::set<std::string, std::less<>> seen_;
  bool active_ = false;
};

}  // namespace

void set_failpoint_hook(FailpointHook hook) { installed_hook.store(hook); }

void failpoint_reached(std::string_view name) {
  if (const auto hook = installed_hook.load()) {
    hook(name);
    return;
  }
  static EnvironmentFailpoints environment;
  environment.reached(name);
}

}  // namespace verger
