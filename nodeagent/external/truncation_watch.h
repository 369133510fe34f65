#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "nodeagent/external/server_process.h"
#include "nodeagent/http/timers.h"

namespace verger::external {

/// Starts a server again that ended by itself in order to cut its log: a former leader with records
/// that no other node has notes the position in truncate.chk and ends with status 0; the next start
/// cuts, and from 24.6 ends once more (node-interface.md §3.8).
///
/// It acts only where all of this was seen: the server answered; at the first look after that it
/// did not, truncate.chk named a position, and no process had the database open for writing. So a
/// server that an operator stopped, or whose files are being restored, is left alone; one that the
/// agent itself keeps stopped is in any case.
///
/// Then it starts the server, with growing pauses, until it answers: not while the process that had
/// the files open, or one that a start brought up, is still there (a start beside it does nothing).
/// It gives up, and says so in problem(), once no process was there for a quarter of an hour in
/// all; how often it was started does not count, nor does the time that a process takes to open its
/// database. A service manager that restarts it by itself is not in the way.
class TruncationWatch {
 public:
  struct Environment {
    net::any_io_executor executor;
    FileSystem& files;
    http::Timers& timers;
    Clock& clock;
    Log& log;
    std::function<bool()> answers;  ///< the server answered at the last look
    std::function<net::awaitable<Result<void>>()> start;
    /// find_server() of the database, on a thread that may block.
    std::function<net::awaitable<Result<std::optional<ServerProcess>>>()> find;
    std::function<bool(const ServerProcess&)> runs;  ///< still_runs()
    /// An operation of the agent wants the server stopped: it is left alone. Empty: none ever does.
    std::function<bool()> kept_stopped{};
    /// Where it is kept that it gave up and why, until the server answers: a restarted agent says
    /// it, too. Empty: nowhere.
    Path given_up_file{};
  };
  TruncationWatch(Path database, std::chrono::milliseconds interval, Environment environment);
  /// Ends the looking; a start under way ends by itself.
  ~TruncationWatch();
  void start();
  /// For people, while it starts the server and once it has given up; else empty.
  [[nodiscard]] std::string problem() const;
  /// It gave up, and the server has not answered since.
  [[nodiscard]] bool has_given_up() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::external
