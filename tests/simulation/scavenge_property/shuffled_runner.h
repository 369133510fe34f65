#pragma once

#include <utility>

#include "engine/base/random.h"
#include "engine/scavenge/parallel_runner.h"

namespace verger::test {

/// Runs the pieces one after the other in a random order, so that a seed gives the same run again.
class ShuffledRunner final : public scavenge::ParallelRunner {
 public:
  explicit ShuffledRunner(Random& random) : random_(random) {}
  void run(const std::vector<std::function<void()>>& pieces) override {
    std::vector<const std::function<void()>*> order;
    for (const auto& piece : pieces) {
      order.push_back(&piece);
      std::swap(order.back(), order[random_.below(order.size())]);
    }
    for (const auto* piece : order) {
      (*piece)();
    }
  }

 private:
  Random& random_;
};

}  // namespace verger::test
