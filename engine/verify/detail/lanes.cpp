#include "engine/verify/detail/lanes.h"

#include <algorithm>
#include <functional>

namespace verger::verify::detail {

Lanes::Lanes(std::size_t lanes, scavenge::ParallelRunner& runner)
    : lanes_(std::max<std::size_t>(lanes, 1)), runner_(runner) {}

bool Lanes::step(std::uint32_t units) {
  while (running_.size() < lanes_ && !waiting_.empty()) {
    running_.push_back({.work = waiting_.front()});
    waiting_.pop_front();
  }
  std::vector<std::function<void()>> pieces;
  pieces.reserve(running_.size());
  for (auto& lane : running_) {
    pieces.emplace_back([&lane, units] { lane.done = lane.work->step(units); });
  }
  runner_.run(pieces);
  for (const auto& lane : running_) {
    finished_bytes_ += lane.done ? lane.work->bytes() : 0;
  }
  std::erase_if(running_, [](const Lane& lane) { return lane.done; });
  return running_.empty() && waiting_.empty();
}

std::uint64_t Lanes::bytes() const {
  auto sum = finished_bytes_;
  for (const auto& lane : running_) {
    sum += lane.work->bytes();
  }
  return sum;
}

}  // namespace verger::verify::detail
