#pragma once

#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "nodeagent/external/service_control.h"
#include "nodeagent/http/timers.h"

namespace verger::external {

/// Starts a server again that ended by itself in order to cut its log: a former leader with records
/// that nobody else has notes the position in truncate.chk and ends with status 0; the next start
/// cuts, and from 24.6 ends once more (node-interface.md §3.8).
///
/// It acts only where all of this was seen: the server answered; at the first look after that it
/// did not, truncate.chk named a position, and no process had the database open for writing. So a
/// server that somebody stopped, or whose files are being restored, is left alone. At most three
/// starts until it answers again; a service manager that restarts it by itself is not in the way.
class TruncationWatch {
 public:
  struct Environment {
    net::any_io_executor executor;
    FileSystem& files;
    http::Timers& timers;
    Clock& clock;
    Log& log;
    std::function<bool()> answers;  ///< the server answered at the last look
  };
  TruncationWatch(Path database, ServiceOptions service, std::chrono::milliseconds interval,
                  Environment environment);
  /// Ends the looking; a start under way ends by itself.
  ~TruncationWatch();
  void start();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::external
