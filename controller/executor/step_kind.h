#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json_fwd.hpp>

#include "controller/cluster/observer.h"
#include "controller/cluster/peers.h"
#include "controller/executor/run_state.h"
#include "planner/plan.h"

/// The seam between the executor's core and the kinds of steps: the core knows no kind by name.
/// A new kind is one file that implements StepKind and one line in its operation's table, or in
/// step_kinds.cpp where it is no operation's own.
namespace verger::controller {

/// Why a step that acts is to stop.
enum class Interrupt : std::uint8_t { kPause, kCancel, kSkip, kHours };

/// What a kind may see and use. Values are copies of the moment; peers talk to the nodes.
struct StepContext {
  ClusterConfig cluster;
  planner::Step step;
  StepState state;
  planner::ClusterSnapshot snapshot;
  std::map<std::string, std::string> values;  ///< of the run
  std::vector<LeaderMove> moves;              ///< of the run, so far
  std::set<std::string> skipped_nodes;        ///< of the run
  planner::Policy policy;
  std::string run;
  ControllerEpoch epoch;
  std::shared_ptr<Peers> peers;
  std::string not_seen = "[]";  ///< JSON: gates that were open since they could not be looked at
  Ticks now;
  /// Since the step took its present state: what waiting is measured by. Not by `now`, which may
  /// be set back or forward at any time.
  std::chrono::milliseconds in_state{};
  /// Since the step has had its present reason, as far as this process saw it.
  std::chrono::milliseconds in_reason{};
  std::optional<Interrupt> interrupt{};  ///< in StepKind::interrupt: why
  /// Another step of the run as it is now, by its id; nullopt: there is none. Not set where no run
  /// is behind the context.
  std::function<std::optional<StepState>(std::string_view step)> state_of{};

  [[nodiscard]] const planner::NodeSnapshot* node() const { return snapshot.find(step.node); }
  /// What permits and operations call this attempt: a permit for one attempt is none for another,
  /// so that a message which comes late finds the door closed.
  [[nodiscard]] std::string attempt_name() const;
};

/// What the kind says before it acts.
struct Readiness {
  enum class Kind : std::uint8_t {
    kReady,      ///< act now
    kWait,       ///< for `reason`
    kNotNeeded,  ///< what it wants is seen already
    kFail,       ///< waiting will not help, for `reason`
  };
  Kind kind = Kind::kReady;
  std::string reason{};  ///< for people
  JsonObject memo{};     ///< of a kReady, journaled with the intent
  JsonObject result{};   ///< of a kNotNeeded
  /// As Verdict's; journaled with a kNotNeeded, and with the intent of a kReady.
  std::map<std::string, std::string> values{};
  /// What a person has to see to: with a kWait the step's alert, raised at once; with a kNotNeeded
  /// one of the run, which stays open when the step has ended.
  std::string alert{};
};

/// Member of a done step's result: what it saw that is not as it should be, a sentence each.
inline constexpr std::string_view kDifferences = "differences";

/// Value of a run: {"database"}: the cluster's history was replaced, and is of that database
/// (empty: not known). What the registry knows of its epochs is of the former history, and is
/// forgotten before the step that leaves the value is done.
inline constexpr std::string_view kNewHistoryValue = "new_history";

/// Value of a run: {"joined": [{"name", "url", "agent_url"}], "left": [NAME]}: the registration of
/// the cluster is changed so before the step that leaves the value is done. Where it cannot be,
/// since another registration has the name or the URL meanwhile, the step fails.
inline constexpr std::string_view kMembersValue = "members";
/// Value of a run: {"note"}: what an operator has to know who gives nodes of this cluster older
/// data later. Every plan that does (planner::Operation::replaces_data, or joining) shows it.
inline constexpr std::string_view kOlderDataNoteValue = "kept/older_data_note";

/// Parameter of a step: the name of a dead node that leaves the cluster with it (empty: none), or a
/// list of such names. Its silence is expected, and no operator is notified to start it.
inline constexpr std::string_view kReplacesParameter = "replaces";

/// What the node was seen to have done about the newest intent.
struct Verdict {
  enum class Kind : std::uint8_t {
    kRunning,      ///< at it
    kDone,         ///< seen done
    kNotArrived,   ///< the agent never got the operation: send it again under the same id
    kNotHappened,  ///< certainly not done, nor at it: may be sent again, as a new attempt
    kStopped,      ///< seen stopped, half done: may resume, as a new attempt that costs nothing
    kFailed,       ///< repeating it will not help, for `reason`
    kUnknown,      ///< not known yet, for `reason`
  };
  Kind kind = Kind::kUnknown;
  std::string reason;     ///< for people
  JsonObject progress{};  ///< of a kRunning
  /// Of a kDone. With a list of texts as `differences` (see kDifferences) it is done,
  /// and the run that has one ends as done-with-differences instead of done.
  JsonObject result{};
  /// How an attempt ended that was not the step's end, as a stable word: "errored",
  /// "stopped-by-someone", "stopped-by-us", "interrupted", "other-point". Journaled with it.
  std::string outcome;
  /// Values for later steps: name -> JSON text; journaled with a kDone or kRunning.
  std::map<std::string, std::string> values;
  /// Merged into the step's memo, such as the node's id of the work that was found.
  JsonObject memo{};
};

/// The answer to an act: never taken for the deed, except that a refusal is a refusal.
struct ActAnswer {
  enum class Kind : std::uint8_t { kAccepted, kRefused, kNotSent, kUnknown };
  Kind kind = Kind::kUnknown;
  std::string reason;  ///< for people
  /// Merged into the step's memo, such as the id the node gave.
  JsonObject memo{};
};

/// Stateless: everything it knows is in the context. Errors are verdicts.
class StepKind {
 public:
  virtual ~StepKind() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// After the gates, before permit and intent.
  virtual net::awaitable<Readiness> prepare(StepContext context) = 0;
  /// Once per intent. The operation id is context.state.operation.
  virtual net::awaitable<ActAnswer> act(StepContext context) = 0;
  /// Looks at the node until it can tell. Must not act. The snapshot's other nodes have what is in
  /// their gossip, unless looks_at_all_nodes().
  virtual net::awaitable<Verdict> observe(StepContext context) = 0;
  [[nodiscard]] virtual bool looks_at_all_nodes() const { return false; }
  /// True: what it waits for is the end of its operation at its node's agent. While that is under
  /// way the agent alone is queried between two looks, and for nothing else.
  [[nodiscard]] virtual bool waits_for_agent(const StepContext& context) const;
  /// Why it is too late for the step to begin; empty: it may. Looked at before its gates, again and
  /// again while they hold it back: the step then fails.
  [[nodiscard]] virtual std::string too_late(const StepContext& context) const;
  /// False: it cannot be stopped, or the policy leaves it to end.
  [[nodiscard]] virtual bool can_interrupt(const StepContext& context, Interrupt why) const;
  /// Has the node stop what the step began; observe() then says kStopped. Repeated until the
  /// step has stopped.
  virtual net::awaitable<void> interrupt(StepContext context);
  /// Undoes what the step did or may have done; called again until observe_undo() says kDone.
  virtual net::awaitable<ActAnswer> undo(StepContext context);
  virtual net::awaitable<Verdict> observe_undo(StepContext context);
  /// True: what it does is done before the run ends, however that ends. A stage of such steps
  /// alone.
  [[nodiscard]] virtual bool closes_run() const { return false; }
  /// Why what it did is no longer to be undone; empty: it is. The steps before it still are. It
  /// then counts as not undone, with this reason and undo_command().
  [[nodiscard]] virtual std::string must_stay(const StepContext& context) const;
  /// True: it stops its node's server, whose silence is expected from then on until a later step
  /// has started it.
  [[nodiscard]] virtual bool stops_server() const { return false; }
  /// Until when it should have been undone, for people, where that is past: raised as an alert with
  /// undo_command(), long before the stage's deadline perhaps; empty: it is not.
  [[nodiscard]] virtual std::string undo_overdue(const StepContext& context) const;
  /// With which a person undoes it where that could not be done or seen; empty: none is known.
  [[nodiscard]] virtual std::string undo_command(const StepContext& context) const;
  /// True: it only brings its node back to how it was. Nothing about another node holds it up.
  [[nodiscard]] virtual bool restores(const planner::Step& step) const;
  /// False: nothing to undo, also where it acted.
  [[nodiscard]] virtual bool can_undo() const { return false; }
};

/// What an operation looks at before its plan is made, beyond the snapshot.
struct PreflightContext {
  ClusterConfig cluster;
  planner::Policy policy;
  planner::ClusterSnapshot snapshot;
  std::shared_ptr<Peers> peers;
  Network network;
  Ticks now;
};
/// Changes nothing, takes a minute at most, and throws nothing: what it cannot find out is a
/// refusal or a note.
using PreflightFunction = std::function<net::awaitable<planner::Preflight>(PreflightContext)>;

/// Kinds by name, and what operations look at before they plan. Fill it before the executor starts.
class StepKinds {
 public:
  void add(std::unique_ptr<StepKind> kind);
  [[nodiscard]] StepKind* find(std::string_view name) const;

  void add_preflight(std::string operation, PreflightFunction preflight);
  /// nullptr: the operation has none.
  [[nodiscard]] const PreflightFunction* find_preflight(std::string_view operation) const;

 private:
  std::unordered_map<std::string, std::unique_ptr<StepKind>> kinds_;
  std::unordered_map<std::string, PreflightFunction> preflights_;
};

}  // namespace verger::controller
