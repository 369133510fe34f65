#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/random.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/real_cluster.h"

namespace verger::test {

/// A paused node keeps its connections: its client tries another one after this.
constexpr std::chrono::milliseconds kCallTimeout{600};

/// Appends event after event to a stream of its own, each at its place, through whichever node;
/// what was not acknowledged is sent again under its id.
class Writer {
 public:
  Writer(const RealCluster& cluster, std::uint64_t seed, int number)
      : cluster_(cluster),
        random_(seed),
        caller_({}, kCallTimeout),
        stream_(fmt::format("account-{}", number)),
        thread_([this](const std::stop_token& stop) { write(stop); }) {}

  void stop() {
    thread_.request_stop();
    thread_.join();
  }
  [[nodiscard]] const std::string& stream() const { return stream_; }
  [[nodiscard]] int acknowledged() const { return acknowledged_; }
  [[nodiscard]] int refused() const { return refused_; }
  /// The id of each event that was sent, in order. After stop().
  [[nodiscard]] const std::vector<std::string>& ids() const { return ids_; }
  /// An answer that contradicts what had been acknowledged. After stop().
  [[nodiscard]] const std::string& contradiction() const { return contradiction_; }

 private:
  void write(const std::stop_token& stop);

  /// Sends the newest event once.
  bool sent();

  const RealCluster& cluster_;
  SeededRandom random_;
  HttpsCaller caller_;
  std::string stream_;
  std::vector<std::string> ids_;
  std::string contradiction_;
  std::atomic<int> acknowledged_ = 0;
  std::atomic<int> refused_ = 0;
  std::jthread thread_;
};

/// Reads the newest events of the streams through whichever node. What was there once must stay.
class Reader {
 public:
  Reader(const RealCluster& cluster, std::uint64_t seed, std::vector<std::string> streams)
      : cluster_(cluster),
        random_(seed),
        caller_({}, kCallTimeout),
        streams_(std::move(streams)),
        thread_([this](const std::stop_token& stop) { read(stop); }) {}

  void stop() {
    thread_.request_stop();
    thread_.join();
  }
  /// Of each stream the ids by number. After stop().
  [[nodiscard]] const std::map<std::string, std::map<std::size_t, std::string>>& seen() const {
    return seen_;
  }
  /// A number that has had two events. After stop().
  [[nodiscard]] const std::string& contradiction() const { return contradiction_; }

 private:
  void read(const std::stop_token& stop);
  void saw(std::size_t node, const std::string& stream, std::size_t number, const std::string& id);

  const RealCluster& cluster_;
  SeededRandom random_;
  HttpsCaller caller_;
  std::vector<std::string> streams_;
  std::map<std::string, std::map<std::size_t, std::string>> seen_;
  std::string contradiction_;
  std::jthread thread_;
};

}  // namespace verger::test
