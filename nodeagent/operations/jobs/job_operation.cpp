#include "nodeagent/operations/jobs/job_operation.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace verger::agent {
namespace {

using nlohmann::json;

/// What the memory has once the job has ended: {"state", "text", "code"}.
constexpr const char* kOutcome = "outcome";

void keep_outcome(OperationRecord& record, std::string_view state, std::string text,
                  std::string_view code = {}) {
  auto memory = memory_of(record);
  memory[kOutcome] = {{"state", state}, {"text", std::move(text)}, {"code", code}};
  record.memory_json = memory.dump();
}

class LastReference final : public Job {
 public:
  explicit LastReference(std::shared_ptr<MeteredJob> job) : job_(std::move(job)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    job_.reset();
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }

 private:
  std::shared_ptr<MeteredJob> job_;
};

}  // namespace

std::shared_ptr<Job> last_reference_to(std::shared_ptr<MeteredJob> job) {
  return std::make_shared<LastReference>(std::move(job));
}

void JobOperation::dropped(const OperationRecord& /*record*/, bool /*keep*/) {}

net::awaitable<Result<void>> JobOperation::run_paced(LocalNode node,
                                                     std::shared_ptr<MeteredJob> job) const {
  const auto control = node.control;
  auto paced =
      std::make_shared<PacedJob>(std::move(job), control, node.clock, PacedJob::Lease::kOfQueries);
  co_return co_await runner(node).run(std::move(paced), control->stop_flag());
}

net::awaitable<Result<void>> JobOperation::run(LocalNode node, std::shared_ptr<MeteredJob> job,
                                               const OperationRecord& /*record*/) {
  return run_paced(std::move(node), std::move(job));
}

net::awaitable<Result<void>> JobOperation::act(LocalNode node, OperationRecord& record) {
  if (memory_of(record).contains(kOutcome)) {
    co_return Result<void>();  // the agent ended before it reported that
  }
  const auto control = node.control;
  auto made = co_await prepare(node, record);
  auto outcome = made ? Result<void>() : Result<void>(made.error());
  auto job = made ? *std::move(made) : nullptr;
  bool is_done = false;
  if (job && !control->stopping()) {
    control->report(job->progress());
    outcome = co_await run(node, job, record);
    is_done = outcome.has_value();
  }
  const auto result = is_done ? result_of(*job) : std::string();
  static_cast<void>(co_await runner(node).run(last_reference_to(std::exchange(job, nullptr)),
                                              std::make_shared<node::StopFlag>()));
  if (is_done) {
    keep_outcome(record, "done", result);
  } else if (control->cancelled()) {
    dropped(record, control->keeps());
    keep_outcome(record, "failed", "stopped on request", "stopped");
  } else if (!control->stopping()) {  // else the agent ends: the next one acts again
    dropped(record, /*keep=*/false);
    keep_outcome(record, "failed", outcome.error().message, to_string(outcome.error().code));
  }
  co_return Result<void>();
}

net::awaitable<Observation> JobOperation::observe(LocalNode /*node*/, OperationRecord& record) {
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

net::awaitable<bool> JobOperation::cancel(LocalNode node, OperationRecord& /*record*/, bool keep) {
  node.control->cancel(keep);
  co_return true;
}

}  // namespace verger::agent
