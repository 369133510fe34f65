#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "nodeagent/external/online_access.h"

namespace verger::node {
class Core;
}  // namespace verger::node

namespace verger::sim {

/// What the simulation sees, and disturbs, of agents that switch chunks into their nodes. Outlives
/// all processes.
struct OnlineWork {
  bool disturbed = false;           ///< connections break from now on
  std::set<std::string> locked;     ///< nodes whose chunk lock an agent holds
  std::uint64_t switches = 0;       ///< that were made
  std::uint64_t broken_before = 0;  ///< connections that broke before a call arrived
  std::uint64_t broken_after = 0;   ///< ... after it was carried out, and not answered
};

/// The node of this process, as its Unix socket would show it: there is none on virtual time. Calls
/// take a little of it, and are answered by the node's own lock and the node's own switch.
class SimOnlineAccess final : public external::OnlineAccess {
 public:
  /// All outlive it; `node` gives nullptr while there is none.
  SimOnlineAccess(std::string name, external::OfflineMachine machine, http::Timers& timers,
                  std::function<std::shared_ptr<node::Core>()> node, OnlineWork& work);
  [[nodiscard]] external::OnlineLook look() const override;
  [[nodiscard]] Result<std::shared_ptr<client::RedactionClient>> connect(
      const net::any_io_executor& executor) const override;

 private:
  std::string name_;
  http::Timers& timers_;
  std::function<std::shared_ptr<node::Core>()> node_;
  OnlineWork& work_;
};

}  // namespace verger::sim
