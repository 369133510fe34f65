#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/real_cluster.h"

namespace verger::test {

/// Appends one event after the other to the stream "written-steadily" until it is to stop, on a
/// thread of its own. An event whose outcome is not known, or that was refused for the moment, is
/// sent again under its id, to the next node.
class SteadyWriter {
 public:
  SteadyWriter(const RealCluster& cluster, const std::filesystem::path& roots,
               std::chrono::seconds patience = std::chrono::seconds(20));
  ~SteadyWriter() { stop(); }
  SteadyWriter(const SteadyWriter&) = delete;
  SteadyWriter& operator=(const SteadyWriter&) = delete;

  void stop();
  /// Of its event of that number, from 0.
  static std::string id_of(int number);
  int written() const { return written_; }
  /// Events that were not written within `patience`.
  int failed() const { return failed_; }
  /// Requests that were answered otherwise than by 201, or not.
  int tries_in_vain() const { return in_vain_; }
  std::chrono::milliseconds slowest() const { return std::chrono::milliseconds(slowest_); }
  /// False: an event failed meanwhile.
  bool wait_for(int more) const;

 private:
  void write();
  const RealCluster& cluster_;
  HttpsCaller caller_;
  std::chrono::seconds patience_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> written_ = 0;
  std::atomic<int> failed_ = 0;
  std::atomic<int> in_vain_ = 0;
  std::atomic<std::int64_t> slowest_ = 0;
  std::size_t next_node_ = 0;
  std::thread thread_;
};

/// How many of a SteadyWriter's events the node has, in their order from the first. -1: it does not
/// answer, or one is not what was written.
int written_steadily_at(HttpsCaller& caller, const std::string& url);

/// By the gossip of every node.
bool all_alive_everywhere(const RealCluster& cluster, HttpsCaller& caller);

}  // namespace verger::test
