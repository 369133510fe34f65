#include "controller/operations/scavenge/points_without_agent.h"

#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"
#include "engine/base/mutation.h"

namespace verger::controller::scavenge {

using nlohmann::json;

net::awaitable<Result<PointsLook>> look_at_points(StepContext context) {
  PointsLook out;
  const auto kept = context.values.find(kPointsBefore);
  const auto before =
      kept == context.values.end() ? json::object() : steps::parsed_or_empty(kept->second);
  if (before.contains("unreadable") || is_mutated("points-unread")) {
    co_return out;
  }
  const auto peers = context.peers;
  const auto name = context.step.node;
  const auto newest = co_await peers->newest_scavenge_point(name);
  if (!newest && newest.error().code != Errc::kUnsupported) {
    co_return newest.error();
  }
  if (before.contains("number")) {
    out.has_new = newest && *newest > before.value("number", -1LL);
  } else {
    out.values[kPointsBefore] =
        (newest ? json{{"number", *newest}} : json{{"unreadable", newest.error().message}}).dump();
  }
  co_return out;
}

}  // namespace verger::controller::scavenge
