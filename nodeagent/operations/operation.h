#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json_fwd.hpp>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "nodeagent/client/node_client.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/node/inspection.h"
#include "nodeagent/operations/operation_journal.h"

namespace verger::external {
class OfflineServer;
class OnlineAccess;
}  // namespace verger::external

namespace verger::node {
class JobRunner;
}  // namespace verger::node

namespace verger::agent {

class Digests;
class JobControl;

/// The node beside this agent. `inspection` gives nullptr while the node is stopped.
struct LocalNode {
  client::NodeClient& client;
  std::function<node::NodeInspection*()> inspection;
  http::Timers& timers;
  Clock& clock;
  Log& log;
  /// The serials of the node's certificate: as a new connection sees it, and in its file. Empty
  /// where the agent cannot know.
  std::function<net::awaitable<Result<std::string>>()> served_serial{};
  std::function<Result<std::string>()> serial_on_disk{};
  /// The server in another process; nullptr where it cannot be stopped and started.
  external::OfflineServer* offline = nullptr;
  /// Its files while it runs; nullptr where the agent has no access to them.
  external::OnlineAccess* online = nullptr;
  /// Drives long work beside the server.
  node::JobRunner* jobs = nullptr;
  /// Of the operation: shared with its job (jobs/). Set in all calls but look().
  std::shared_ptr<JobControl> control{};
  /// Journals the memory_json of the operation in the middle of a call, before it does what must
  /// not be done twice. Where it cannot be journaled that is logged. May be empty.
  std::function<void(const std::string& memory_json)> remember{};
};

/// The parameter that every kind may have: the gates of the last look.
inline constexpr std::string_view kGatesParameter = "gates";

/// What looking at the node shows about an operation that may have acted.
struct Observation {
  enum class Kind : std::uint8_t {
    kRunning,      ///< at it
    kDone,         ///< seen done; `text` is the result (JSON)
    kNotHappened,  ///< certainly nothing was done: a new request is safe
    kFailed,       ///< `code` and `text` say why
    kUnknown,      ///< the node cannot tell yet; `text` is the reason
  };
  Kind kind = Kind::kUnknown;
  std::string code;
  std::string text;
};

/// One kind of operation. Stateless: what must survive a restart is in the record's memory_json,
/// which the agent stores after each call.
class Operation {
 public:
  virtual ~Operation() = default;
  [[nodiscard]] virtual std::string_view kind() const = 0;
  /// The names its parameters may have; a request with others is refused.
  [[nodiscard]] virtual std::vector<std::string_view> parameters() const = 0;
  /// Reads the parameters and takes a last look at the node before acting. An error ends the
  /// operation: nothing was done.
  virtual net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) = 0;
  /// Sends the one request. An error other than kUnknownOutcome means that the node said no, or
  /// was not reached: nothing was done.
  virtual net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) = 0;
  /// Looks at the node, as often as is liked. It begins nothing: all it may do is to undo what
  /// act() left behind, where that is safe at any time and any number of times (to start the server
  /// that act() stopped, to stop the run that act() began), whichever controller is in charge then.
  virtual net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) = 0;
  /// True for work on the node's files: an agent is at one such operation at a time.
  [[nodiscard]] virtual bool works_on_files() const { return false; }
  /// True where it is the server that does this work: while it is down, nothing is in the way of
  /// others.
  [[nodiscard]] virtual bool works_in_server() const { return false; }
  /// False where nothing of the node's database is touched, and the operation has to be possible
  /// while it cannot be proved that the agent's directories are its node's: an undo.
  [[nodiscard]] virtual bool needs_own_directories() const { return true; }
  /// True where act() leaves the node, until it returns, in a state that must not last (a stopped
  /// server). An agent that ends cancels such an operation and waits for act().
  [[nodiscard]] virtual bool blocks_shutdown() const { return false; }
  /// True where the agent itself does the work, as a job: it can be throttled, and tells how far it
  /// is.
  [[nodiscard]] virtual bool has_job() const { return false; }
  /// True where an agent that finds the operation unfinished is to call act() again: what it does
  /// changes nothing beside the agent.
  [[nodiscard]] virtual bool resumes_by_acting() const { return false; }
  /// How far it is, of a kind without a job; nullopt: not known.
  [[nodiscard]] virtual std::optional<api::OperationProgress> progress(const LocalNode& node) const;
  /// Has the node stop what was begun; observe() then shows it. `keep`: what a job has in memory is
  /// of use later. False: it cannot be stopped.
  virtual net::awaitable<bool> cancel(LocalNode node, OperationRecord& record, bool keep);
};

/// resign {}: has the node resign; done once it was seen out of the leader's role, or in it
/// with a newer epoch. Codes: "not_leader", "no_effect".
std::unique_ptr<Operation> make_resign_operation();
/// set_priority {"priority"}: done once the node's own gossip shows it. Code: "no_effect".
std::unique_ptr<Operation> make_priority_operation();
/// reload {}: has the node read its certificates again; done once a new connection to it shows
/// the certificate that is in its file. Result: {"serial", "serialBefore"}. Code: "no_effect" (the
/// node's log says why it kept the former one).
std::unique_ptr<Operation> make_reload_operation();
/// digest {"point", "readable", "throttlePercent", "bytesPerSecond"}: computes the digest of the
/// log up to a scavenge point. Result: as api::Digest. It can be stopped. `digests` outlives it.
std::unique_ptr<Operation> make_digest_operation(Digests& digests);
/// start_service {}: starts the server unless it runs; done once it answers. Code: "no_answer".
std::unique_ptr<Operation> make_start_service_operation();

}  // namespace verger::agent
