#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "engine/base/clock.h"
#include "nodeagent/external/child_process.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/node/job_runner.h"
#include "nodeagent/operations/drill/drill_place.h"
#include "nodeagent/operations/drill/drill_settings.h"

namespace verger::agent {

/// The node of a drill: a single one on loopback, on ports of its own. It ends with this object.
class DrillServer {
 public:
  /// What it needs, all of which outlives it.
  struct Environment {
    const DrillSettings& settings;
    FileSystem& files;
    http::Timers& timers;
    Clock& clock;
  };
  /// Starts it on the restored database and waits until it leads. One that ends with status 0
  /// before it answers is started again: a server does that once or twice after a restore. Errors:
  /// kUnavailable: it ended, or does not lead in time; the message has the end of its log;
  /// kCancelled once `stop` is requested; kIo.
  static net::awaitable<Result<std::unique_ptr<DrillServer>>> start(
      Environment environment, DrillPlace* place, std::shared_ptr<const node::StopFlag> stop);

  /// Where its log ended when it led.
  [[nodiscard]] std::int64_t writer_position() const { return writer_position_; }
  /// SIGTERM, and waits for its end; after the limit SIGKILL.
  net::awaitable<void> stop();

 private:
  explicit DrillServer(Environment environment) : environment_(environment) {}
  Result<void> spawn(DrillPlace& place);
  /// Its URL; empty: not known yet.
  [[nodiscard]] std::string url(const DrillPlace& place) const;
  net::awaitable<Result<bool>> leads(const std::string& url);

  Environment environment_;
  std::unique_ptr<external::ChildProcess> process_;
  std::uint16_t port_ = 0;  ///< of a server of the operator's own
  std::int64_t writer_position_ = -1;
};

}  // namespace verger::agent
