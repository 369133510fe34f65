#include "nodeagent/operations/jobs/beside_server_operation.h"

#include <nlohmann/json.hpp>

namespace verger::agent {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kServerLook{500};

/// What the memory has once the job has ended: {"state", "text", "code"}.
constexpr const char* kOutcome = "outcome";

void keep_outcome(OperationRecord& record, std::string_view state, std::string text,
                  std::string_view code = {}) {
  auto memory = memory_of(record);
  memory[kOutcome] = {{"state", state}, {"text", std::move(text)}, {"code", code}};
  record.memory_json = memory.dump();
}

}  // namespace

void BesideServerOperation::dropped(const OperationRecord& /*record*/, bool /*keep*/) {}

net::awaitable<Result<void>> BesideServerOperation::look(LocalNode node, OperationRecord& record) {
  auto* inspection = node.inspection();
  if (inspection == nullptr) {
    co_return Error{Errc::kUnavailable, "the server does not answer; this needs it running"};
  }
  co_return check(*inspection, record);
}

net::awaitable<Result<void>> BesideServerOperation::act(LocalNode node, OperationRecord& record) {
  if (memory_of(record).contains(kOutcome)) {
    co_return Result<void>();  // the agent ended before it said so
  }
  const auto control = node.control;
  auto outcome = Result<void>();
  std::shared_ptr<MeteredJob> job;
  // After a restart of the agent its server may not have been seen yet.
  while (!control->stopping() && node.inspection() == nullptr) {
    control->report({.phase = "waiting for the server"});
    co_await node.timers.sleep_for(kServerLook);
  }
  if (!control->stopping()) {
    auto made = make_job(node, *node.inspection(), record);
    if (made) {
      job = *std::move(made);
      control->report(job->progress());
      auto paced =
          std::make_shared<PacedJob>(job, control, node.clock, PacedJob::Lease::kOfQueries);
      outcome = co_await node.jobs->run(std::move(paced), control->stop_flag());
    } else {
      outcome = made.error();
    }
  }
  if (control->stopping() && !control->cancelled()) {
    co_return Result<void>();  // the agent ends: the next one acts again
  }
  if (outcome && job && !control->cancelled()) {
    keep_outcome(record, "done", result_of(*job));
    co_return Result<void>();
  }
  job = nullptr;
  if (control->cancelled()) {
    dropped(record, control->keeps());
    keep_outcome(record, "failed", "stopped on request", "stopped");
  } else {
    dropped(record, /*keep=*/false);
    keep_outcome(record, "failed", outcome.error().message, to_string(outcome.error().code));
  }
  co_return Result<void>();
}

net::awaitable<Observation> BesideServerOperation::observe(LocalNode /*node*/,
                                                           OperationRecord& record) {
  const auto outcome = memory_of(record).value(kOutcome, json::object());
  const auto state = outcome.value("state", std::string());
  if (state.empty()) {
    co_return Observation{.kind = Observation::Kind::kRunning, .code = {}, .text = {}};
  }
  co_return Observation{
      .kind = state == "done" ? Observation::Kind::kDone : Observation::Kind::kFailed,
      .code = outcome.value("code", std::string()),
      .text = outcome.value("text", std::string())};
}

net::awaitable<bool> BesideServerOperation::cancel(LocalNode node, OperationRecord& /*record*/,
                                                   bool keep) {
  node.control->cancel(keep);
  co_return true;
}

}  // namespace verger::agent
