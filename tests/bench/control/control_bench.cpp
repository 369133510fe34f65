// Plans a rolling scavenge of many nodes, and prints the time beside a yardstick of the same
// machine and run: hashing the text of the plan, which any plan with a hash needs.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <vector>

#include "engine/base/digest.h"
#include "planner/make_plan.h"
#include "tests/unit/planner/clusters.h"

namespace {

using namespace verger;  // NOLINT(google-build-using-namespace): a program of its own

/// Of this thread: other programs on a busy machine do not count.
double cpu_time_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// The middle of seven runs.
template <class Work>
double median_ms(const Work& work) {
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    const auto begin = cpu_time_ms();
    const auto result = work();  // its destruction is not timed
    times.push_back(cpu_time_ms() - begin);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 1000;
  auto snapshot = planner::testing::cluster(nodes);
  std::ranges::reverse(snapshot.nodes);
  const planner::Policy policy;
  std::size_t steps = 0;
  std::string text;
  const double planning = median_ms([&] {
    auto plan = planner::make_plan(snapshot, policy);
    if (!plan) {
      std::abort();
    }
    steps = plan->stages.size();
    return plan;
  });
  text = planner::hashed_json(*planner::make_plan(snapshot, policy)).text();
  const double hashing = median_ms([&] { return to_hex(sha256(as_bytes(text))); });
  fmt::print(
      "plan of {} nodes: {:.2f} ms of CPU, {} stages, {} bytes; yardstick (SHA-256 of it) {:.2f} "
      "ms; "
      "ratio {:.1f}\n",
      nodes, planning, steps, text.size(), hashing, planning / hashing);
  return 0;
}
