#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/scavenge/parallel_runner.h"

namespace verger::verify::detail {

/// How many bytes of a checksum one unit of a job's budget is: a record, about.
inline constexpr std::uint64_t kBytesPerUnit = 256;

/// A piece of a verification, done in steps. It does not fail: what it cannot do is a finding.
class Work {
 public:
  Work() = default;
  virtual ~Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  /// True once all is done.
  virtual bool step(std::uint32_t units) = 0;
  /// Read from the disk so far.
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

/// Pieces of work, so many side by side.
class Lanes {
 public:
  /// `runner` outlives it.
  Lanes(std::size_t lanes, scavenge::ParallelRunner& runner);
  /// `work` outlives it.
  void add(Work& work) { waiting_.push_back(&work); }
  /// One step of each piece that runs; true once all are done.
  bool step(std::uint32_t units);
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Lane {
    Work* work = nullptr;
    bool done = false;
  };
  std::size_t lanes_;
  scavenge::ParallelRunner& runner_;
  std::deque<Work*> waiting_;
  std::vector<Lane> running_;
  std::uint64_t finished_bytes_ = 0;
};

}  // namespace verger::verify::detail
