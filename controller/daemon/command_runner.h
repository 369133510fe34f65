#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "nodeagent/http/timers.h"

namespace verger::controller {

namespace net = boost::asio;

/// The programs that notifications may run. A policy comes by the API, so its author
/// must not thereby run any command as vergerd's user: only programs of one directory are run,
/// which its owner, root or vergerd's user, alone can change; with an environment that holds no
/// secret of vergerd's; and not for ever.
class CommandRunner {
 public:
  struct Options {
    Path directory;  ///< empty: no command is run
    std::chrono::milliseconds limit{30'000};
  };
  /// `executor` of one thread; `timers` and `log` outlive it.
  CommandRunner(boost::asio::any_io_executor executor, Options options, http::Timers& timers,
                Log& log);
  /// Ends what still runs.
  ~CommandRunner();
  CommandRunner(const CommandRunner&) = delete;
  CommandRunner& operator=(const CommandRunner&) = delete;

  /// The file that `program` names: one of the directory, by its name alone or by its whole path.
  /// Errors: kRefused (no directory, outside of it, others can change it), kNotFound.
  [[nodiscard]] Result<Path> admit(const std::string& program) const;

  /// Runs it to its end with `input`, at most 64 KiB, on its standard input. What runs longer than
  /// the limit is killed, with all it has started in its session. Errors: those of admit(),
  /// kInvalidArgument (too much input), kUnavailable (too many run), kIo, kTimeout (killed),
  /// kRefused (it exited with another code than 0).
  net::awaitable<Result<void>> run(std::vector<std::string> command, std::string input);
  /// Programs that have not ended.
  [[nodiscard]] std::size_t running() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace verger::controller
