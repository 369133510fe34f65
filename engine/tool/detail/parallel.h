#pragma once

#include <cstddef>
#include <functional>

namespace verger::tool {

/// As many threads as the machine runs at once, from 1 to 8.
int default_threads();

/// Runs piece(0) to piece(count - 1), up to `threads` of them side by side; returns when all have
/// run. `tick` is called in the calling thread meanwhile, some times a second: for progress. With
/// one thread all runs in the calling one, and `tick` comes after each piece.
void run_parallel(std::size_t count, int threads, const std::function<void(std::size_t)>& piece,
                  const std::function<void()>& tick);

}  // namespace verger::tool
