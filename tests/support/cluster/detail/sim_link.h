#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>

#include "tests/support/cluster/detail/sim_process.h"

namespace verger::testing {

/// A replication link between two processes. Frames arrive in order, each after a delay.
struct SimLink : std::enable_shared_from_this<SimLink> {
  struct End {
    SimHost* host = nullptr;
    std::uint64_t incarnation = 0;
    std::deque<Bytes> arrived;
    bool closed = false;
    /// Owned by this end's connection, which goes with its process.
    std::weak_ptr<SimSignal> signal;
  };

  explicit SimLink(SimWorld& of) : world(of) {}
  [[nodiscard]] bool joins(const std::string& a, const std::string& b) const;
  Result<void> send(std::size_t from, Bytes frame);
  /// This end closes it; the other one sees that after what is under way.
  void close(std::size_t from);
  /// Both ends see it now, as after a reset.
  void break_both();

  /// Makes both ends and starts the acceptor's handler. Null when nothing listens.
  static std::shared_ptr<http::FrameConnection> join(SimWorld& world, SimHost& from,
                                                     const http::Endpoint& to);

  SimWorld& world;
  std::array<End, 2> ends;

 private:
  [[nodiscard]] bool alive(std::size_t end) const;
  void wake(std::size_t end);
  /// Carries `action` out at the other end, in order.
  void after_delay(std::size_t to, std::function<void(SimLink&)> action);
  std::array<Monotonic, 2> last_arrival_{};
};

}  // namespace verger::testing
