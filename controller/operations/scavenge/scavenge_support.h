#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"

/// What the steps of a scavenge share.
namespace verger::controller::scavenge {

/// Name of the run's value that a recorded digest leaves: {"node", "readable"}.
inline constexpr const char* kDigestBefore = "digest_before";

/// The step makes the run's scavenge point: the one that is to make it, or, where that one's turn
/// was put off or left out, the next. Settled when the step prepares, then kept in its memo.
bool makes_point(const StepContext& context);
/// The same, where the step's memo has been read.
bool makes_point(const StepContext& context, const nlohmann::json& memo);

/// Number of the point the run is about; -1 where it was not seen.
std::int64_t shared_point(const StepContext& context);

/// Why a step waits for a point to show in the node's log, and how old that knowledge is.
std::string point_not_seen(const planner::AgentFacts& facts, std::int64_t number);
/// Why a step waits for the agent of `node`, with what was seen of it.
std::string silent_agent(const planner::NodeSnapshot* node);

/// Name of the run's value that holds how large a node's complete chunks were before anything was
/// done to it: {"chunks" (those below this one), "bytes"}.
std::string size_before_name(std::string_view node);
/// Notes that in the memo ("chunks_below", "bytes_before"), where no earlier attempt or step has.
void note_size_before(const StepContext& context, const planner::AgentFacts& facts,
                      nlohmann::json& memo);
/// Of the chunks up to the run's point alone, where more have been completed since: so the sizes of
/// all nodes are of the same chunks.
net::awaitable<void> note_size_up_to_point(const StepContext& context, nlohmann::json& memo);
/// "chunks_below" of the memo; -1: it was not noted.
std::int64_t chunks_below(const nlohmann::json& memo);
/// Adds "bytes_before", "bytes_after" and "chunks_compared" to a result: of the same chunks, so
/// that what was written meanwhile is in neither. Null where one of them was not seen.
void add_sizes(const nlohmann::json& memo, const api::NodeFacts& facts, nlohmann::json& result);
/// While the agent has not read its log up to the point that its node has just finished, the sizes
/// are not to be had: what to keep in the memo until then. nullopt: nothing more will come.
std::optional<nlohmann::json> sizes_to_come(const nlohmann::json& memo,
                                            const api::AgentFacts& facts);
/// Of a step whose agent works on the node's chunk files, up to the shared point: ready, with
/// "point" and "position" in its memo and the size before noted; or why not yet, or no longer.
net::awaitable<Readiness> ready_for_shared_point(StepContext context);
/// After the agent has ended it with `agent_result`: done once the node shows it, too. Result as of
/// a scavenge.
net::awaitable<Verdict> seen_at_shared_point(StepContext context, nlohmann::json agent_result);
/// Leaves the size before for later steps on the node.
void keep_size_before(const StepContext& context, const nlohmann::json& memo, Verdict& verdict);

}  // namespace verger::controller::scavenge
