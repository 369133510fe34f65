#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/executor/executor.h"
#include "controller/scheduler/policy_book.h"

namespace verger::controller {

/// Runs a program with `input` on its standard input, to its end: an error is that it did not
/// start, was killed, or exited with another code than 0.
using RunCommand = std::function<net::awaitable<Result<void>>(std::vector<std::string> command,
                                                              std::string input)>;

struct Mail {
  std::string to;
  std::string subject;
  std::string text;
  std::string id;  ///< the same for each attempt
};
/// Hands a mail to the mail server; done once that has taken it.
using SendMail = std::function<net::awaitable<Result<void>>(Mail mail)>;

struct NotifierParts {
  net::any_io_executor executor;
  Journal& journal;
  Executor& runs;
  PolicyBook& book;
  Network network;
  RunCommand run_command;  ///< empty: commands are not run, and that is logged
  /// Says whose policies are notified of what concerns a cluster as a whole; nullptr: none are.
  const Registry* registry = nullptr;
  ControllerEpoch epoch{};
  SendMail send_mail{};  ///< empty: no mail is sent, and that is logged
};

/// Since the start of this controller.
struct NotificationCounts {
  struct Of {
    std::uint64_t sent = 0;
    std::uint64_t failed = 0;   ///< given up
    std::uint64_t retried = 0;  ///< attempts that failed and will be repeated
  };
  Of webhooks;
  Of commands;
  Of mails;
  std::size_t waiting = 0;  ///< not delivered yet
};

/// What became of a test of one recipient.
struct NotificationTest {
  std::string to;       ///< without what may be a secret
  std::string problem;  ///< empty: delivered
};

/// Notifies webhooks, commands and mail addresses, as policies order it: {"id", "moment", "policy",
/// "cluster", "run", "reason", "at"} as JSON, of a run that was done "duration_seconds" and, where
/// nodes report it, "bytes_freed" too.
///
/// At least once: what was journaled and not delivered is delivered after a restart, and attempts
/// are repeated, ever more seldom, for a day from the event on. What is on record as delivered is
/// not sent again; "id" is the same for each attempt, so that a recipient can tell. Each recipient
/// gets its notifications one after the other, in their order. One executor.
class Notifier {
 public:
  explicit Notifier(NotifierParts parts);
  ~Notifier();
  /// What was journaled before notifications were first ordered is old news.
  Result<void> load();
  /// Looks at what has been journaled since, and begins to deliver.
  void look();
  /// One attempt for each recipient of the policy, at once and side by side with all else. Errors:
  /// kNotFound: there is no such policy.
  net::awaitable<Result<std::vector<NotificationTest>>> test(std::string policy, std::string by);
  /// Deliveries under way or waiting for their next attempt.
  [[nodiscard]] std::size_t active() const;
  [[nodiscard]] const NotificationCounts& counts() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::controller
