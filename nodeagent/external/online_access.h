#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "engine/base/database_files.h"
#include "nodeagent/client/grpc/redaction_client.h"
#include "nodeagent/external/database_look.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/http/timers.h"

namespace verger::external {

/// What a look at a running server showed of work on its chunk files.
struct OnlineLook {
  /// Why there can be none, and what to do about it; empty: it is possible.
  std::string problem{};
  /// By which the server switches chunk files; of no meaning with a problem.
  client::RedactionSocket socket{};
  /// Database and index are in one file system, so that files of both can be linked into a
  /// directory inside the database's.
  bool one_file_system = false;
};

/// Whether chunk files that `maker` makes could be switched into a server of this version that has
/// `place` open: version from 23.6 on, its Unix socket there, listening, open to this process, and
/// of the user whose the directories are. A licence is not looked at: servers from 24.10 on may
/// still refuse. Connects to the socket, asks nothing, changes nothing; takes no noticeable time.
OnlineLook look_at_online_access(const DatabasePlace& place, std::string_view version,
                                 const FileMaker& maker = this_process());

/// The database directory of a running server, for work on its chunk files beside it.
class OnlineAccess {
 public:
  /// `version`: of the server as it answered last; empty: it did not. `more`: why it is left alone
  /// all the same, as archive_problem(); empty: it is not. All outlive it.
  OnlineAccess(DatabasePlace place, OfflineMachine machine, http::Timers& timers,
               std::function<std::string()> version, std::function<std::string()> more = {});
  virtual ~OnlineAccess() = default;
  OnlineAccess(const OnlineAccess&) = delete;
  OnlineAccess& operator=(const OnlineAccess&) = delete;

  [[nodiscard]] const DatabasePlace& place() const { return place_; }
  [[nodiscard]] const OfflineMachine& machine() const { return machine_; }
  [[nodiscard]] virtual OnlineLook look() const;
  /// A connection for the calls of one operation, on `executor`. Errors: kRefused, with the look's
  /// problem; those of RedactionClient::connect.
  [[nodiscard]] virtual Result<std::shared_ptr<client::RedactionClient>> connect(
      const net::any_io_executor& executor) const;

 private:
  DatabasePlace place_;
  OfflineMachine machine_;
  http::Timers& timers_;
  std::function<std::string()> version_;
  std::function<std::string()> more_;
};

}  // namespace verger::external
