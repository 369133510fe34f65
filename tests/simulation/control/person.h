#pragma once

#include <memory>
#include <string>

#include "tests/simulation/control/scenario.h"

namespace verger::sim {

/// Registers the cluster and the policy, starts the run where no schedule does, and has intents.
/// Calls whichever controller acts, by HTTP.
class Operator {
 public:
  Operator(Site& site, const Scenario& scenario);
  /// Continues until a run has started.
  void begin();
  /// Without waiting for the schedule any longer.
  void start_by_hand() { state_->by_hand = true; }
  [[nodiscard]] const std::string& run() const { return state_->run; }
  [[nodiscard]] const std::string& obstacle() const { return state_->obstacle; }
  /// POST, once; the answer is not waited for.
  void send(const Intent& intent);
  /// PUT, once.
  void change_policy(const std::string& yaml);
  /// A plan was refused: the answer.
  void on_refused(std::function<void(const std::string& body)> listener) {
    state_->on_refused = std::move(listener);
  }

 private:
  struct State {
    std::string run;
    std::string obstacle = "not yet asked";
    bool by_hand = false;
    std::function<void(const std::string&)> on_refused{};
  };
  static net::awaitable<void> work(Site& site, const Scenario& scenario,
                                   std::shared_ptr<State> state);
  Site& site_;
  const Scenario& scenario_;
  std::shared_ptr<State> state_;
};

}  // namespace verger::sim
