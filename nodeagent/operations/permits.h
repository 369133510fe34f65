#pragma once

#include <map>
#include <string>

#include "engine/base/clock.h"
#include "engine/base/result.h"
#include "nodeagent/api/agent.h"

namespace verger::agent {

/// Which step of which controller may act on this node at present. A permit runs out on this
/// agent's own monotonic clock, and none survives a restart: a controller that has been replaced
/// cannot act here later, however late its message arrives.
class Permits {
 public:
  explicit Permits(Clock& clock) : clock_(clock) {}

  /// Older controllers' permits end at once.
  void grant(const api::Permit& permit);
  /// kRefused: no permit for this step and epoch, or it has run out.
  Result<void> check(const api::OperationRequest& request) const;

 private:
  struct Granted {
    std::int64_t controller_epoch = 0;
    Monotonic expires{};
  };
  Clock& clock_;
  std::map<std::string, Granted> by_step_;  ///< key: run and step
};

}  // namespace verger::agent
