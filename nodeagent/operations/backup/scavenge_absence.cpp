#include "nodeagent/operations/backup/scavenge_absence.h"

#include <fmt/format.h>

#include "nodeagent/operations/fresh_look.h"

namespace verger::agent {

net::awaitable<Result<ScavengesSeen>> see_that_no_scavenge_runs(LocalNode node, std::string why) {
  const auto current = client::to_result(co_await node.client.current_scavenge());
  if (!current) {
    co_return Error{Errc::kUnavailable,
                    fmt::format("whether a scavenge runs on the node cannot be seen: {}",
                                current.error().message)};
  }
  if (!current->id.empty()) {
    co_return Error{Errc::kConflict,
                    fmt::format("scavenge {} runs on this node: {}", current->id, why)};
  }
  const auto looked = co_await fresh_look(std::move(node));
  if (!looked) {
    co_return Error{Errc::kUnavailable, fmt::format("the state of the node's scavenges cannot be "
                                                    "seen: {}",
                                                    looked.error().message)};
  }
  ScavengesSeen out;
  if (const auto finished = (*looked)->last_finished_point()) {
    out.finished = finished->number;
  }
  if (const auto unfinished = (*looked)->unfinished_scavenge()) {
    out.unfinished = unfinished->point.number;
  }
  co_return out;
}

}  // namespace verger::agent
