#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/executor/executor.h"
#include "controller/scheduler/policy_book.h"

namespace verger::controller {

/// Starts a program with `input` on its standard input and does not wait for it.
using RunCommand =
    std::function<Result<void>(const std::vector<std::string>& command, const std::string& input)>;

struct NotifierParts {
  net::any_io_executor executor;
  Journal& journal;
  Executor& runs;
  PolicyBook& book;
  Network network;
  RunCommand run_command;  ///< empty: commands are not run, and that is logged
  /// Says whose policies are notified of what concerns a cluster as a whole; nullptr: none are.
  const Registry* registry = nullptr;
};

/// Since the start of this controller. A command counts as notified once it runs.
struct NotificationCounts {
  struct Of {
    std::uint64_t sent = 0;
    std::uint64_t failed = 0;
  };
  Of webhooks;
  Of commands;
};

/// Notifies webhooks and commands as policies order it: {"moment", "policy", "cluster", "run",
/// "reason", "at"} as JSON, of a run that was done "duration_seconds" and, where nodes report it,
/// "bytes_freed" too. At most once: what happened while the controller was down, or could not
/// be delivered in three attempts, is not sent again; the journal and the metrics still have it.
/// One executor.
class Notifier {
 public:
  explicit Notifier(NotifierParts parts);
  ~Notifier();
  /// What is in the journal by now is old news.
  Result<void> load();
  /// Looks at what has been journaled since, and begins to deliver.
  void look();
  /// Deliveries under way.
  [[nodiscard]] std::size_t active() const;
  [[nodiscard]] const NotificationCounts& counts() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::controller
