#pragma once

#include <functional>
#include <memory>
#include <vector>

namespace verger::scavenge {

/// Runs independent pieces of work side by side. Injected, so that a simulation stays in one
/// thread.
class ParallelRunner {
 public:
  virtual ~ParallelRunner() = default;
  /// Returns when all have run. Pieces do not throw.
  virtual void run(const std::vector<std::function<void()>>& pieces) = 0;
};

/// One after the other in the calling thread.
ParallelRunner& inline_runner();

/// With `threads` - 1 threads of its own beside the calling one; they end with the object.
std::unique_ptr<ParallelRunner> make_thread_runner(int threads);

}  // namespace verger::scavenge
