#pragma once

#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "controller/api/bootstrap_token.h"
#include "controller/api/retention.h"
#include "controller/cluster/agent_book.h"
#include "controller/executor/executor.h"
#include "controller/operations/operation_settings.h"
#include "controller/scheduler/notifier.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/message.h"
#include "nodeagent/http/timers.h"

namespace verger::controller {

/// What a controller is configured with.
struct ControllerOptions {
  Path data_directory;         ///< holds journal.db; made when missing
  Path credentials_directory;  ///< one file per name; may be missing while no cluster names one
  std::chrono::milliseconds request_deadline{15'000};
  ExecutorOptions executor;
  std::chrono::milliseconds scheduler_tick{1'000};  ///< between two looks at what is due
  std::int64_t epoch_above = 0;                     ///< the epoch is a greater one
  planner::Policy policy;  ///< for plans whose request does not say otherwise
  std::chrono::seconds agent_certificate_lifetime = std::chrono::hours(24 * 90);
  RetentionRules retention;
  /// By which others reach the API, as far as it is configured.
  std::string reached_at{};
  /// Whether the API's certificate is one of the agents' authority.
  bool api_of_agents_authority = false;
  /// Between two compactions of the journal; zero: none but those that are requested.
  std::chrono::minutes compact_every{0};
  /// Between two looks at each cluster, for what is shown of all of them; zero: none.
  std::chrono::seconds survey_every{0};
};

/// What comes from outside: real in vergerd, virtual in the simulation. All of it outlives the
/// controller.
struct ControllerEnvironment {
  net::any_io_executor executor;  ///< of one thread
  FileSystem& files;
  Clock& clock;
  Random& random;
  http::Timers& timers;
  http::Client& client;
  Log& log;
  http::Client* services = nullptr;  ///< see Network::services
  /// See Network::clients_of.
  std::function<Result<ClusterClients>(const std::string& trusted_roots)> clients_of{};
  /// See Network::roots_of.
  std::function<std::vector<http::CertificateInfo>(const std::string& trusted_roots)> roots_of{};
  RunCommand run_command = {};  ///< for notifications; empty: none is run
  SendMail send_mail = {};      ///< the same; empty: no mail is sent
  /// Whether such a program would be run; empty: any.
  std::function<Result<void>(const std::string& program)> admit_command = {};
  /// Issues the certificates of agents that enrol; null: none can.
  const certificates::Authority* authority = nullptr;
  /// See Network::served_certificate.
  std::function<net::awaitable<Result<http::CertificateInfo>>(http::Endpoint)> served_certificate{};
  /// See Network::served_chain.
  std::function<net::awaitable<Result<std::string>>(http::Endpoint)> served_chain{};
  OperationSettings operations = {};
  /// Empty: SQLite in the data directory.
  std::function<Result<std::unique_ptr<Journal>>()> open_journal = {};
  /// `log` gets a line for what is journaled: see EventLog.
  bool log_events = false;
  /// Null: without a token in the journal the API refuses all callers.
  BootstrapToken* bootstrap = nullptr;
};

/// The controller: everything on one executor. Destroying the executor's context in the middle is
/// a crash and as safe; the way to end in order is stop().
class Controller {
 public:
  /// Opens the journal and takes the next epoch: from now on an older controller on the same
  /// journal is refused. Errors: those of the journal.
  static Result<std::unique_ptr<Controller>> open(ControllerOptions options,
                                                  ControllerEnvironment environment);
  ~Controller();

  /// Replays the journal and resumes the runs that have not ended.
  Result<void> start();
  /// Ends the coroutines of all runs at their next look around; the runs resume at the next start.
  net::awaitable<void> stop();
  /// The API. The handler must not be called after the controller is gone.
  http::Handler handler();
  /// Whether a request's head shows a token that is good: others have smaller limits.
  [[nodiscard]] bool knows(const http::Request& head) const;
  Executor& executor();
  Registry& registry();
  Journal& journal();
  AgentBook& agents();
  ControllerEpoch epoch() const;

 private:
  struct Parts;
  explicit Controller(std::unique_ptr<Parts> parts);
  static net::awaitable<void> compact_now_and_then(Parts& parts);
  static net::awaitable<void> stop_survey(Parts& parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace verger::controller
