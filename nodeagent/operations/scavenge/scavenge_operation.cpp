#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_fields.h"
#include "nodeagent/api/json_writer.h"
#include "nodeagent/client/judge.h"
#include "nodeagent/operations/fresh_look.h"
#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/scavenge/scavenge_operations.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// How long the end of a run may go untold: its last event is written without waiting, and may be
/// lost. Then the state database decides.
constexpr std::int64_t kSilenceLimitSeconds = 10;
/// The end of a run is its newest entry, or among the newest: entries may change places.
constexpr std::int32_t kLogEntries = 20;

constexpr std::int64_t kNotKnown = std::numeric_limits<std::int64_t>::max();

std::int64_t point_number(const std::optional<api::ScavengePoint>& point) {
  return point ? point->number : -1;
}

json point_json(const api::ScavengePoint& point) {
  return {{"number", point.number},
          {"position", point.position},
          {"effectiveNow", point.effective_now},
          {"threshold", point.threshold}};
}

/// What must survive a restart between acting and observing.
struct Waiting {
  std::string scavenge_id;          ///< empty: the answer was lost, or has not come
  std::vector<std::string> before;  ///< ids the node had reported before this operation
  /// Number of the point that was finished before; -1: none; kNotKnown: it could not be read.
  std::int64_t finished_before = -1;
  std::int64_t bytes_before = -1;
  std::int64_t silent_since = 0;  ///< ticks; when the node first said nothing about the run

  static Waiting read(const OperationRecord& record) {
    Waiting memory;
    const auto stored = api::JsonDocument::parse(record.memory_json, "memory");
    if (!stored) {
      return memory;
    }
    api::Fields fields(stored->root(), "memory");
    fields.read("scavenge_id", memory.scavenge_id);
    fields.each("before", [&memory](api::JsonView id, const std::string& /*where*/) {
      memory.before.push_back(id.string());
      return Result<void>();
    });
    fields.read("finished_before", memory.finished_before);
    fields.read("bytes_before", memory.bytes_before);
    fields.read("silent_since", memory.silent_since);
    return memory;
  }
  void write(OperationRecord& record) const {
    api::JsonWriter out;
    out.begin_object().name("before").begin_list();
    for (const auto& id : before) {
      out.value(id);
    }
    record.memory_json = out.end_list()
                             .member("bytes_before", bytes_before)
                             .member("finished_before", finished_before)
                             .member("scavenge_id", scavenge_id)
                             .member("silent_since", silent_since)
                             .end_object()
                             .take();
  }
};

Result<client::ScavengeParameters> parse_parameters(const OperationRecord& record) {
  constexpr const char* kWhat = "parameters of a scavenge";
  const auto asked = api::JsonDocument::parse(record.request.parameters_json, kWhat);
  if (!asked || !asked->root().is_object()) {
    return Error{Errc::kInvalidArgument, fmt::format("{}: not a JSON object", kWhat)};
  }
  std::int32_t threads = 1;
  std::int32_t threshold = 0;
  std::int32_t throttle_percent = 100;
  bool sync_only = false;
  api::Fields fields(asked->root(), kWhat, Errc::kInvalidArgument);
  fields.read("threads", threads);
  fields.read("threshold", threshold);
  fields.read("throttlePercent", throttle_percent);
  fields.read("syncOnly", sync_only);
  VERGER_RETURN_IF_ERROR(fields.result());
  if (threads < 1 || threads > 4) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("threads must be 1 to 4, not {}: a server fails with more", threads)};
  }
  return client::ScavengeParameters{.threads = threads,
                                    .threshold = threshold,
                                    .throttle_percent = throttle_percent,
                                    .sync_only = sync_only};
}

class ScavengeOperation final : public Operation {
 public:
  [[nodiscard]] std::string_view kind() const override { return "scavenge"; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return {"threads", "threshold", "throttlePercent", "syncOnly"};
  }
  [[nodiscard]] bool works_on_files() const override { return true; }
  [[nodiscard]] bool works_in_server() const override { return true; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY([[maybe_unused]] const auto parameters, parse_parameters(record));
    VERGER_CO_TRY(const auto current, client::to_result(co_await node.client.current_scavenge()));
    if (!current.id.empty()) {
      co_return Error{Errc::kConflict,
                      fmt::format("scavenge {} is running on this node already", current.id)};
    }
    // Without it the end of a former run could be taken for that of ours, should the answer to the
    // start be lost.
    VERGER_CO_TRY(const auto history, client::to_result(co_await node.client.scavenges()));
    Waiting memory;
    for (const auto& event : history) {
      memory.before.push_back(event.scavenge_id);
    }
    // A large state database cannot be read while a server that was killed has left its work in
    // it; only the next scavenge clears that away, so that it must not wait for this.
    if (const auto inspection = co_await fresh_look(node)) {
      memory.finished_before = point_number((*inspection)->last_finished_point());
      memory.bytes_before = (*inspection)->chunks().total_bytes;
    } else if (node.inspection() != nullptr) {
      memory.finished_before = kNotKnown;
      memory.bytes_before = node.inspection()->chunks().total_bytes;
    }
    memory.write(record);
    co_return Result<void>();
  }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY(const auto parameters, parse_parameters(record));
    // An accepted start is never taken for the deed: the run can fail at once, or have nothing to
    // do. Its id is what is observed from here on.
    const auto answer = co_await node.client.start_scavenge(parameters);
    if (answer.refused()) {
      co_return client::to_error(answer.verdict, answer.code, answer.why);
    }
    if (!answer.value || answer.value->id.empty()) {
      co_return Error{Errc::kUnknownOutcome, answer.why};
    }
    if (auto* inspection = node.inspection()) {
      inspection->expect_scavenge();
    }
    auto memory = Waiting::read(record);
    memory.scavenge_id = answer.value->id;
    memory.write(record);
    co_return Result<void>();
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) override {
    auto memory = Waiting::read(record);
    const auto current = client::to_result(co_await node.client.current_scavenge());
    if (!current) {
      co_return Observation{
          .kind = Observation::Kind::kUnknown, .code = {}, .text = current.error().message};
    }
    if (memory.scavenge_id.empty()) {
      co_await find_lost_id(node, *current, memory);
    }
    if (!current->id.empty() && current->id == memory.scavenge_id) {
      memory.silent_since = 0;
      memory.write(record);
      co_return Observation{.kind = Observation::Kind::kRunning, .code = {}, .text = {}};
    }
    if (!memory.scavenge_id.empty()) {
      const auto log =
          client::to_result(co_await node.client.scavenge_log(memory.scavenge_id, kLogEntries));
      if (log) {
        for (const auto& event : *log) {
          if (event.type == "$scavengeCompleted") {
            const auto inspection = co_await fresh_look(node);
            // The server may still be at its files; afterwards the point is given without waiting.
            if (!inspection && node.inspection() != nullptr &&
                is_within_silence_limit(node, memory)) {
              memory.write(record);
              co_return Observation{Observation::Kind::kUnknown, {}, inspection.error().message};
            }
            co_return ended(inspection ? *inspection : nullptr, memory, event);
          }
        }
      }
    }
    // Neither running nor reported as ended. Events come late or never, so wait a while, then let
    // the state database decide.
    const bool patient = is_within_silence_limit(node, memory);
    memory.write(record);
    if (patient) {
      co_return Observation{.kind = Observation::Kind::kUnknown,
                            .code = {},
                            .text = "the node does not tell what became of the scavenge yet"};
    }
    const auto inspection = co_await fresh_look(node);
    co_return inspection ? by_state(**inspection, memory)
                         : Observation{Observation::Kind::kUnknown, {}, inspection.error().message};
  }

  [[nodiscard]] std::optional<api::OperationProgress> progress(
      const LocalNode& node) const override {
    const auto* inspection = node.inspection();
    const auto running = inspection == nullptr ? std::nullopt : inspection->running_scavenge();
    if (!running || running->phase.empty()) {
      return std::nullopt;
    }
    return api::OperationProgress{.phase = running->phase,
                                  .done = running->chunks_done,
                                  .total = running->chunks_total,
                                  .unit = "chunks"};
  }

  net::awaitable<bool> cancel(LocalNode node, OperationRecord& record, bool /*keep*/) override {
    const auto id = Waiting::read(record).scavenge_id;
    // The answer may be lost although the run stopped; observe() finds out.
    if (id.empty()) {
      static_cast<void>(co_await node.client.stop_current_scavenge());
    } else {
      static_cast<void>(co_await node.client.stop_scavenge(id));
    }
    co_return true;
  }

 private:
  static bool is_within_silence_limit(const LocalNode& node, Waiting& memory) {
    const auto now = node.clock.now().value();
    if (memory.silent_since == 0 || memory.silent_since > now) {  // later: the clock was set back
      memory.silent_since = now;
    }
    return now - memory.silent_since < kSilenceLimitSeconds * kTicksPerSecond;
  }

  /// The start was answered with nothing. What runs now, or began since, is taken for ours: nothing
  /// ran when this operation looked, and only this agent starts scavenges here.
  static net::awaitable<void> find_lost_id(LocalNode node, api::CurrentScavenge current,
                                           Waiting& memory) {
    if (!current.id.empty()) {
      memory.scavenge_id = current.id;
      co_return;
    }
    const auto history = client::to_result(co_await node.client.scavenges());
    const auto* inspection = node.inspection();
    if (!history || inspection == nullptr) {
      co_return;
    }
    const auto gossip = client::to_result(co_await node.client.gossip());
    if (!gossip) {
      co_return;
    }
    const auto names = client::own_names(*gossip, node.client.node());
    for (const auto& event : *history) {
      if (std::ranges::find(memory.before, event.scavenge_id) == memory.before.end() &&
          client::is_named(names, event.node_endpoint)) {
        memory.scavenge_id = event.scavenge_id;
      }
    }
  }

  static Observation ended(const node::NodeInspection* inspection, const Waiting& memory,
                           const api::ScavengeEvent& event) {
    if (event.result == "Success" && event.error.empty()) {
      json result = {{"scavengeId", memory.scavenge_id},
                     {"spaceSaved", event.space_saved},
                     {"bytesBefore", memory.bytes_before},
                     {"bytesAfter", -1},
                     {"point", nullptr}};
      if (inspection != nullptr) {
        result["bytesAfter"] = inspection->chunks().total_bytes;
        if (const auto point = inspection->last_finished_point()) {
          result["point"] = point_json(*point);
        }
      }
      return {.kind = Observation::Kind::kDone, .code = {}, .text = result.dump()};
    }
    // Up to 24.6 an error is called Interrupted (or Failed) like a restart: the text shows which.
    const bool restarted = event.error == "The node was restarted.";
    return {.kind = Observation::Kind::kFailed,
            .code = event.result == "Stopped"          ? "stopped"
                    : restarted || event.error.empty() ? "interrupted"
                                                       : "errored",
            .text = event.error.empty() ? fmt::format("the scavenge ended: {}", event.result)
                                        : event.error};
  }

  static Observation by_state(const node::NodeInspection& inspection, const Waiting& memory) {
    if (const auto unfinished = inspection.unfinished_scavenge()) {
      return {.kind = Observation::Kind::kFailed,
              .code = "interrupted",
              .text = fmt::format("the scavenge of point {} stands still in stage {}; it can be "
                                  "resumed",
                                  unfinished->point.number, unfinished->stage)};
    }
    if (memory.finished_before == kNotKnown) {
      return {.kind = Observation::Kind::kFailed,
              .code = "interrupted",
              .text =
                  "the node reports no end of the scavenge, and which point it had finished "
                  "before could not be read; the next start resumes it"};
    }
    const auto finished = inspection.last_finished_point();
    if (point_number(finished) > memory.finished_before) {
      const json result = {{"scavengeId", memory.scavenge_id},
                           {"bytesBefore", memory.bytes_before},
                           {"bytesAfter", inspection.chunks().total_bytes},
                           {"point", point_json(*finished)}};
      return {.kind = Observation::Kind::kDone, .code = {}, .text = result.dump()};
    }
    return {.kind = Observation::Kind::kNotHappened,
            .code = {},
            .text = "no scavenge was begun on this node"};
  }
};

}  // namespace

std::unique_ptr<Operation> make_scavenge_operation() {
  return std::make_unique<ScavengeOperation>();
}

std::vector<std::unique_ptr<Operation>> scavenge_operations(QuerySettings settings) {
  std::vector<std::unique_ptr<Operation>> out;
  out.push_back(make_scavenge_operation());
  out.push_back(make_offline_scavenge_operation());
  out.push_back(make_online_scavenge_operation(std::move(settings)));
  out.push_back(make_scavenge_point_operation());
  return out;
}

}  // namespace verger::agent
