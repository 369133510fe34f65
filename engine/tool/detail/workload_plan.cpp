#include "engine/tool/detail/workload_plan.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace verger::tool {
namespace {

enum Setting : std::size_t { kMaxCount, kMaxAge, kTruncate, kSoftDeleted, kDeleted, kNone };

}  // namespace

WorkloadPlan::WorkloadPlan(const Workload& workload, Random& random)
    : workload_(workload),
      events_each_(workload.events / workload.streams),
      streams_with_more_(workload.events % workload.streams),
      settings_(permute(workload.streams, random)) {
  const double shares[] = {workload.max_count_percent, workload.max_age_percent,
                           workload.truncate_percent, workload.soft_deleted_percent,
                           workload.deleted_percent};
  double sum = 0;
  for (std::size_t n = 0; n < std::size(shares); ++n) {
    sum += shares[n];
    bounds_[n] =
        static_cast<std::uint64_t>(std::llround(static_cast<double>(workload.streams) * sum / 100));
  }
  digits_ = std::max<std::size_t>(std::to_string(workload.streams - 1).size(), 7);
  name_ = fmt::format("{}-{:0{}}", workload.prefix, 0, digits_);
}

WorkloadPlan::Permutation WorkloadPlan::permute(std::uint64_t count, Random& random) {
  Permutation result;
  do {
    // 31 bits keep factor * n + shift inside 64 bits for four billion streams.
    result.factor = (random.next() >> 33U) | 1U;
  } while (std::gcd(result.factor, count) != 1);
  result.shift = random.below(count);
  return result;
}

std::string_view WorkloadPlan::name(std::uint64_t stream) const {
  auto* at = name_.data() + name_.size();
  for (std::size_t n = 0; n < digits_; ++n) {
    *--at = static_cast<char>('0' + stream % 10);
    stream /= 10;
  }
  return name_;
}

std::size_t WorkloadPlan::setting(std::uint64_t stream) const {
  const auto rank = settings_.at(stream, workload_.streams);
  return static_cast<std::size_t>(
      std::ranges::find_if(bounds_, [&](std::uint64_t bound) { return rank < bound; }) -
      std::begin(bounds_));
}

std::string WorkloadPlan::metadata(std::uint64_t stream) const {
  switch (setting(stream)) {
    case kMaxCount:
      return fmt::format(R"({{"$maxCount":{}}})", workload_.max_count);
    case kMaxAge:
      return fmt::format(R"({{"$maxAge":{}}})", workload_.max_age_seconds);
    case kTruncate:
      return fmt::format(R"({{"$tb":{}}})", workload_.truncate_before);
    default:
      return {};
  }
}

WorkloadPlan::Ending WorkloadPlan::ending(std::uint64_t stream) const {
  const auto chosen = setting(stream);
  return chosen == kSoftDeleted ? Ending::kSoftDeleted
         : chosen == kDeleted   ? Ending::kDeleted
                                : Ending::kNone;
}

void WorkloadPlan::start_round(Random& random) {
  const auto round = permute(workload_.streams, random);
  round_step_ = round.factor % workload_.streams;
  turn_ = round.shift;
}

}  // namespace verger::tool
