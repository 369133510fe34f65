#pragma once

#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "controller/daemon/agent_renewal.h"
#include "controller/daemon/agents_authority.h"
#include "controller/daemon/bootstrap_token_file.h"
#include "controller/daemon/certificate_signing.h"
#include "controller/daemon/command_runner.h"
#include "controller/daemon/controller.h"
#include "controller/daemon/enrolled_agents.h"
#include "controller/daemon/mailer.h"
#include "controller/daemon/trusted_clients.h"
#include "controller/daemon/vergerd_options.h"
#include "nodeagent/http/task_count.h"

namespace verger::controller {

/// What a term stands on; all of it outlives the term.
struct TermParts {
  net::any_io_executor executor;  ///< of one thread
  const VergerdOptions& options;
  TrustedClients& clients;
  const AgentsAuthority& authority;
  Log& log;
};

using OpenJournal = std::function<Result<std::unique_ptr<Journal>>()>;

/// The time in which this process acts: a controller, the clients of the agents that enrolled with
/// it, and the renewal of their certificates. A process that is one of a pair may have several, one
/// after the other.
///
/// It ends by end(). A handler of a request to the controller keeps the term until it is
/// answered.
class Term : public std::enable_shared_from_this<Term> {
 public:
  /// Takes the next epoch and replays the journal. Errors: those of Controller::open.
  static Result<std::shared_ptr<Term>> open(const TermParts& parts, OpenJournal open_journal);
  /// Resumes the runs that have not ended.
  Result<void> start();
  /// At once nothing new begins; returns when all that was under way has ended.
  net::awaitable<void> end();
  [[nodiscard]] bool has_ended() const { return ended_; }
  Controller& controller() { return *controller_; }

  explicit Term(const TermParts& parts)
      : parts_(parts),
        running_(parts.executor),
        bootstrap_(Path(parts.options.data) / "bootstrap-token", system_random(), parts.log,
                   FirstTokenFile::in(parts.options.data)),
        commands_(parts.executor,
                  {.directory = parts.options.notification_commands,
                   .limit = std::chrono::seconds(parts.options.notification_command_seconds)},
                  http::system_timers(), parts.log),
        mailer_(parts.options.mail_settings()),
        signing_(std::make_shared<CertificateSigning>(
            CertificateSigning::Options{
                .authorities = parts.options.authorities(),
                .commands = parts.options.signing_commands,
                .limit = std::chrono::seconds(parts.options.signing_command_seconds)},
            http::system_timers())) {}

 private:
  Result<void> make(OpenJournal open_journal);
  AgentRenewal renewal();

  TermParts parts_;
  http::TaskCount running_;
  BootstrapTokenFile bootstrap_;
  CommandRunner commands_;
  Mailer mailer_;
  std::shared_ptr<CertificateSigning> signing_;
  std::unique_ptr<EnrolledAgents> enrolled_;
  std::unique_ptr<Controller> controller_;
  net::cancellation_signal stop_renewal_;
  bool ended_ = false;
};

/// Answers the API by the term there is, and by `otherwise` while there is none. It outlives its
/// handler.
class Front {
 public:
  explicit Front(std::function<http::Response(const http::Request&)> otherwise)
      : otherwise_(std::move(otherwise)) {}
  void set(std::shared_ptr<Term> term) { term_ = std::move(term); }
  http::Handler handler();
  /// See Controller::knows; false while there is no term.
  [[nodiscard]] bool knows(const http::Request& head) const;

 private:
  net::awaitable<http::Response> answer(http::Request request);

  std::function<http::Response(const http::Request&)> otherwise_;
  std::shared_ptr<Term> term_;
};

}  // namespace verger::controller
