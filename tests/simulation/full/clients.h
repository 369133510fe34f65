#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/full/cluster.h"

namespace verger::sim {

/// What a person does: registers the cluster, plans, applies, and repeats where the answer was
/// lost. Everything by HTTP over the simulated network.
class Person {
 public:
  explicit Person(Cluster& cluster);
  /// Continues until a run has started.
  void begin();
  /// Empty until then.
  [[nodiscard]] const std::string& run() const { return state_->run; }
  /// Why there is no run yet.
  [[nodiscard]] const std::string& obstacle() const { return state_->obstacle; }
  /// Requests once from the controller the run's view (JSON); empty while nothing came.
  void ask_for_run();
  [[nodiscard]] const std::string& run_view() const { return state_->view; }
  /// POST /runs/RUN/`intent`, once.
  void send_intent(std::string intent);

 private:
  struct State {
    std::string run;
    std::string obstacle = "not yet asked";
    std::string view;
  };
  static net::awaitable<void> work(testing::SimHost& host, std::shared_ptr<State> state);

  Cluster& cluster_;
  std::shared_ptr<State> state_;
};

/// A client that appends one event after another to its own streams, each with the exact expected
/// version, and repeats a write whose outcome it does not know.
class Writer {
 public:
  struct Acknowledged {
    std::string stream;
    std::int64_t number = 0;
    std::string id;
  };

  Writer(Cluster& cluster, std::uint64_t seed);
  void begin();
  /// After the write in progress.
  void finish() { state_->finishing = true; }
  [[nodiscard]] bool finished() const { return state_->finished; }
  [[nodiscard]] const std::vector<Acknowledged>& acknowledged() const {
    return state_->acknowledged;
  }
  /// Answers that cannot be: no other client writes to these streams.
  [[nodiscard]] const std::vector<std::string>& complaints() const { return state_->complaints; }

 private:
  struct State {
    explicit State(std::uint64_t seed) : random(seed) {}
    SeededRandom random;
    bool finishing = false;
    bool finished = false;
    std::vector<Acknowledged> acknowledged;
    std::vector<std::string> complaints;
  };
  static net::awaitable<void> work(testing::SimHost& host, std::shared_ptr<State> state);

  Cluster& cluster_;
  std::shared_ptr<State> state_;
};

}  // namespace verger::sim
