#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
#include "nodeagent/api/backup_operations.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/operations/jobs/job_control.h"
#include "nodeagent/operations/resign_first.h"
#include "nodeagent/operations/restore/restore_operations.h"
#include "nodeagent/operations/server_return.h"

namespace verger::agent {
namespace {

using nlohmann::json;

/// Of the memory: when the stop command was about to be given, in ticks of the wall clock.
constexpr const char* kAsked = "asked";
/// Of the memory: the stop command was given, and has ended one way or another.
constexpr const char* kReturned = "returned";
/// For a server that was on its way down when its agent ended. One that still answers then is
/// stopped by the next operation.
constexpr std::int64_t kGraceSeconds = 10;
/// Of the memory and of the result: whether there was a server to stop.
constexpr const char* kRan = "ran";
/// Of the memory, once that is the outcome.
constexpr const char* kStopCancelled = "cancelled";

Observation failed(std::string_view code, std::string text) {
  return {.kind = Observation::Kind::kFailed, .code = std::string(code), .text = std::move(text)};
}

class StopServerOperation final : public Operation {
 public:
  [[nodiscard]] std::string_view kind() const override { return api::kStopServerKind; }
  [[nodiscard]] std::vector<std::string_view> parameters() const override {
    return {kServiceDeadlineParameter, kResignFirstParameter};
  }
  /// Work on the files has to end first: some of it starts the server when it ends.
  [[nodiscard]] bool works_on_files() const override { return true; }

  net::awaitable<Result<void>> look(LocalNode node, OperationRecord& record) override {
    VERGER_CO_RETURN_IF_ERROR(service_deadline(record));
    VERGER_CO_RETURN_IF_ERROR(flag_of(record, kResignFirstParameter));
    co_return needs_service_control(node);
  }

  net::awaitable<Result<void>> act(LocalNode node, OperationRecord& record) override {
    VERGER_CO_TRY(const auto deadline, service_deadline(record));
    VERGER_CO_TRY(const auto resigns, flag_of(record, kResignFirstParameter));
    if (resigns) {
      co_await resign_first(node);
    }
    // What starts servers must not start this one on its way down.
    VERGER_CO_RETURN_IF_ERROR(node.offline->keep_stopped("operation " + record.request.id,
                                                         external::StopOrder::Server::kMayRun));
    const auto free = co_await node.offline->files_are_free();
    auto memory = memory_of(record);
    memory[kRan] = node.inspection() != nullptr || !free || !*free;
    memory[kAsked] = node.clock.now().value();
    if (node.remember) {
      node.remember(memory.dump());
    }
    record.memory_json = memory.dump();
    VERGER_FAILPOINT("agent.stop-server.before-stop");
    const auto stopped = co_await node.offline->stop(deadline, node.control->stop_flag());
    VERGER_FAILPOINT("agent.stop-server.stopped");
    memory[kReturned] = true;
    record.memory_json = memory.dump();
    if (stopped) {
      co_return Result<void>();
    }
    if (node.control->cancelled()) {
      memory[kStopCancelled] = stopped.error().message;
      record.memory_json = memory.dump();
      co_return Result<void>();
    }
    if (stopped.error().code == Errc::kTimeout || node.control->stopping()) {
      co_return Result<void>();  // observe() sees what becomes of it
    }
    VERGER_CO_RETURN_IF_ERROR(node.offline->allow_start());
    co_return stopped;
  }

  net::awaitable<Observation> observe(LocalNode node, OperationRecord& record) override {
    if (node.offline == nullptr) {
      co_return Observation{.kind = Observation::Kind::kUnknown,
                            .code = {},
                            .text = "the agent no longer knows how to stop and start its server"};
    }
    const auto memory = memory_of(record);
    if (const auto why = memory.value(kStopCancelled, std::string()); !why.empty()) {
      co_return give_up(node, failed("stopped", why));
    }
    if (!memory.contains(kAsked)) {
      co_return give_up(node, {.kind = Observation::Kind::kNotHappened,
                               .code = {},
                               .text = "the agent ended before it stopped the server"});
    }
    const auto free = co_await node.offline->files_are_free();
    const bool silent = node.inspection() == nullptr;
    if (free && *free && silent) {
      if (node.offline->kept_stopped_by().empty()) {
        co_return failed("interrupted", "a request to start the server came meanwhile");
      }
      co_return Observation{.kind = Observation::Kind::kDone,
                            .code = {},
                            .text = json{{kRan, memory.value(kRan, true)}}.dump()};
    }
    const auto waited =
        (node.clock.now().value() - memory.value(kAsked, std::int64_t{0})) / kTicksPerSecond;
    if (!memory.value(kReturned, false) && !silent && waited >= kGraceSeconds) {
      co_return give_up(node, {.kind = Observation::Kind::kNotHappened,
                               .code = {},
                               .text = "the agent ended while it stopped the server, which runs"});
    }
    const auto limit = service_deadline(record).value_or(kServiceDeadline);
    if (std::chrono::seconds(waited) >= limit) {
      co_return give_up(
          node,
          failed("no_effect", fmt::format("the server was asked to stop {} s ago and still "
                                          "{}; see its log and that of its service",
                                          waited, silent ? "has its files open" : "answers")));
    }
    co_return Observation{.kind = free ? Observation::Kind::kRunning : Observation::Kind::kUnknown,
                          .code = {},
                          .text = free ? fmt::format("the server is shutting down ({} s)", waited)
                                       : free.error().message};
  }

  net::awaitable<bool> cancel(LocalNode node, OperationRecord& /*record*/, bool keep) override {
    node.control->cancel(keep);
    co_return true;
  }

 private:
  /// The server may be started again.
  static Observation give_up(const LocalNode& node, Observation seen) {
    if (const auto allowed = node.offline->allow_start(); !allowed) {
      node.log.warning("the order that the server stays stopped was not lifted",
                       {{"error", allowed.error().message}});
    }
    return seen;
  }
};

}  // namespace

std::unique_ptr<Operation> make_stop_server_operation() {
  return std::make_unique<StopServerOperation>();
}

}  // namespace verger::agent
