#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/operations/fresh_look.h"
#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/scavenge/scavenge_operations.h"
#include "nodeagent/operations/waiting_limit.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// A server gives up writing the point after seconds, or hangs without a leader.
constexpr std::chrono::seconds kPointLimit{60};

/// The newest point that the node's scavenge state knows; a run that resumes has its point there
/// from its first moments on.
std::optional<api::ScavengePoint> newest_of_state(const node::NodeInspection& inspection) {
  if (auto unfinished = inspection.unfinished_scavenge()) {
    return unfinished->point;
  }
  return inspection.last_finished_point();
}

/// A point without the scavenge: the run that writes it is stopped once its point is seen. To stop
/// it once more is safe at any time, so that observe() does it: a lost answer leaves nothing
/// running.
class ScavengePointOperation final : public Operation {
 public:
  [[nodiscard]] std::string_view kind() const override { return "scavenge_point"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override { return {"threshold"}; }
  [[nodiscard]] bool works_on_files() const override { return true; }
  [[nodiscard]] bool works_in_server() const override { return true; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY([[maybe_unused]] const auto threshold, threshold_of(record));
    VERGER_CO_TRY(const auto current, client::to_result(co_await node.client.current_scavenge()));
    if (!current.id.empty()) {
      co_return Error{Errc::kConflict,
                      fmt::format("scavenge {} is running on this node", current.id)};
    }
    VERGER_CO_TRY(const auto* inspection, co_await fresh_look(node));
    if (inspection->unfinished_scavenge()) {
      co_return Error{Errc::kConflict,
                      "an unfinished scavenge would be resumed, and write no point"};
    }
    VERGER_CO_TRY(const auto points, inspection->scavenge_points());
    const auto finished = inspection->last_finished_point();
    const auto reached = finished ? finished->number : -1;
    const auto latest = points.empty() ? reached : points.back().number.value();
    if (latest > reached) {
      co_return Error{
          Errc::kConflict,
          fmt::format("point {} is in the log and would be taken instead of a new one", latest)};
    }
    record.memory_json = json{{"latest", std::max(latest, reached)}}.dump();
    co_return Result<void>();
  }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) override {
    client::ScavengeParameters parameters;
    VERGER_CO_TRY(parameters.threshold, threshold_of(record));
    // At the slowest pace: what it removes before it is stopped is left to the plan's own work.
    parameters.throttle_percent = 1;
    parameters.sync_only = false;
    const auto answer = co_await node.client.start_scavenge(parameters);
    if (answer.refused()) {
      co_return client::to_error(answer.verdict, answer.code, answer.why);
    }
    if (!answer.value || answer.value->id.empty()) {
      co_return Error{Errc::kUnknownOutcome, answer.why};
    }
    co_return Result<void>();
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) override {
    const auto memory = memory_of(record);
    const auto unknown = [](std::string why) {
      return Observation{.kind = Observation::Kind::kUnknown, .code = {}, .text = std::move(why)};
    };
    const auto current = client::to_result(co_await node.client.current_scavenge());
    const auto looked = current ? co_await fresh_look(node) : current.error();
    if (!looked) {
      co_return unknown(looked.error().message);
    }
    const auto* inspection = *looked;
    const auto point = newest_of_state(*inspection);
    const bool is_made = point && point->number > memory.value("latest", -1LL);
    if (!current->id.empty()) {
      if (is_made) {
        static_cast<void>(co_await node.client.stop_scavenge(current->id));
      }
      co_return Observation{.kind = Observation::Kind::kRunning,
                            .code = {},
                            .text = is_made ? "stopping the scavenge" : "waiting for the point"};
    }
    if (is_made) {
      co_return Observation{.kind = Observation::Kind::kDone,
                            .code = {},
                            .text = json{{"point",
                                          {{"number", point->number},
                                           {"position", point->position},
                                           {"effectiveNow", point->effective_now},
                                           {"threshold", point->threshold}}}}
                                        .dump()};
    }
    if (waited_longer_than(kPointLimit, node.clock.now(), record)) {
      co_return Observation{.kind = Observation::Kind::kFailed,
                            .code = "no_point",
                            .text = "no scavenge runs, and no new point is in its state"};
    }
    co_return unknown("the node does not show the point yet");
  }

 private:
  static Result<std::int32_t> threshold_of(const OperationRecord& record) {
    const auto asked = json::parse(record.request.parameters_json, nullptr, false);
    const auto threshold = asked.is_object() ? asked.value("threshold", json(0)) : json(0);
    if (!threshold.is_number_integer()) {
      return Error{Errc::kInvalidArgument,
                   "parameters of scavenge_point: \"threshold\" must be a whole number"};
    }
    return threshold.get<std::int32_t>();
  }
};

}  // namespace

std::unique_ptr<Operation> make_scavenge_point_operation() {
  return std::make_unique<ScavengePointOperation>();
}

}  // namespace verger::agent
