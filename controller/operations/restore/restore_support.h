#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/executor/run_state.h"
#include "controller/executor/step_support.h"
#include "planner/restore/restore_steps.h"

/// What the kinds of a restore's steps share.
namespace verger::controller::cluster_restore {

namespace names = planner::restore_steps;

[[nodiscard]] bool of_whole_cluster(const planner::Step& step);
/// The value that says that restored servers of the step's cluster, or its node, may be started.
std::string committed_value(const planner::Step& step);
[[nodiscard]] bool is_committed(const StepContext& context);

/// As steps::act_through_agent, of a node whose process may be any, or none: no instance is
/// expected, and an agent whose server does not answer is not asked to check gates through it.
net::awaitable<ActAnswer> act_on_server(StepContext context, std::string kind,
                                        nlohmann::json parameters);

/// nullopt: the operation is done. `phase`: what it does while it reports nothing itself.
std::optional<Verdict> unless_done(const StepContext& context, const steps::OperationNews& news,
                                   std::string_view phase);

/// The operation that undoes the step, once its agent says that it is done; else what
/// observe_undo() answers. `under_way`: why it is not undone while the agent is at it.
net::awaitable<std::expected<api::OperationStatus, Verdict>> undo_by_agent(
    const StepContext& context, std::string_view under_way);

/// Its agent says that the server is stopped, and nothing answers.
[[nodiscard]] bool is_seen_stopped(const planner::NodeSnapshot& node);
/// Why it is not; empty: it is.
std::string why_not_seen_stopped(const planner::NodeSnapshot* node, const std::string& name);
/// A node that must not run now, and does: why; empty: there is none. Of scope cluster it may be
/// any, of scope node the step's own.
std::string runs_again(const StepContext& context);

/// Whether the node's log has all that the leader calls committed. A server reports where the last
/// committed record begins, an embedded node where it ends: a log that ends at that position may
/// lack the record, unless the leader's ends there, too.
[[nodiscard]] bool has_committed(const planner::NodeSnapshot& node,
                                 const planner::NodeSnapshot& leader);

/// The former files of a voter may hold what it has acknowledged: the others need to have all of
/// that before they go, or the loss of the leader would lose it. Why they do not; empty: they do.
std::string lacks_committed(const StepContext& context);

/// Notes in a step's memo what an operator's commands need, as long as the agent can tell.
net::awaitable<void> note_machine(StepContext context, nlohmann::json& memo);
/// "on n1.example.com: WHAT"
std::string on_machine(const StepContext& context, std::string_view what);
/// With which an operator reverts the step's node, from what was noted.
std::string revert_command(const StepContext& context);

/// The run's value kBeforeValue: where the replaced logs ended.
std::map<std::string, std::int64_t> positions_before(
    const std::map<std::string, std::string>& values);

/// Adds to the notes of the report of a run that restored files what its steps kRedactAgain have
/// done and shown: a sentence for each node.
void note_redacted_again(const RunState& run, nlohmann::json& notes);

}  // namespace verger::controller::cluster_restore
