#include "nodeagent/operations/online_scavenge/online_work.h"

#include <fmt/format.h>

#include "engine/online/installation.h"
#include "nodeagent/node/job_runner.h"

namespace verger::agent::beside {
namespace {

using std::chrono::milliseconds;

/// A server that was killed comes back, or does not; until then its work waits. As long as an agent
/// that restarts its server gives it (a large index takes minutes to open); then the operation
/// fails with what is switched in place, and the controller tries again.
constexpr milliseconds kServerReturn{300'000};

class OneEngineCall final : public Job {
 public:
  explicit OneEngineCall(std::function<Result<void>()> call) : call_(std::move(call)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    VERGER_RETURN_IF_ERROR(call_());
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }

 private:
  std::function<Result<void>()> call_;
};

}  // namespace

Result<void> RoomWatch::check() {
  const auto now = clock_.monotonic();
  if (now < next_look_) {
    return {};
  }
  next_look_ = now + std::chrono::seconds(1);
  const auto space = files_.space(directory_);
  if (!space || space->available >= kept_free_) {
    return {};
  }
  return Error{Errc::kNoSpace,
               fmt::format("{}: {} bytes are free, and {} are left to the running server; no chunk "
                           "of it was changed",
                           directory_.string(), space->available, kept_free_)};
}

OnlineFailure failure_of(const Error& error) {
  switch (error.code) {
    case Errc::kUnsupported:
    case Errc::kRefused:
      return {.code = "not_supported", .text = error.message};
    case Errc::kCancelled:
      return {.code = "stopped", .text = "stopped on request"};
    default:
      return {.code = std::string(to_string(error.code)), .text = error.message};
  }
}

OnlineFailure stopped() { return {.code = "stopped", .text = "stopped on request"}; }

net::awaitable<Result<void>> call(Shared work, std::function<Result<void>()> engine) {
  co_return co_await work->node.jobs->run(std::make_shared<OneEngineCall>(std::move(engine)),
                                          std::make_shared<node::StopFlag>());
}

net::awaitable<Result<void>> remove_shadow(Shared work) {
  co_return co_await call(work, [work] {
    return online_scavenge::remove_shadow(work->machine.files, work->place.database);
  });
}

net::awaitable<bool> server_is_there(Shared work) {
  for (milliseconds waited{0}; work->node.inspection() == nullptr; waited += kServerPoll) {
    if (work->stopping() || waited >= kServerReturn) {
      co_return false;
    }
    work->report("waiting for the server");
    // The inspection is refreshed by the agent itself: this asks nothing. Ends once it answers,
    // with a cancel, or when the limit has passed.
    co_await work->node.timers.sleep_for(kServerPoll);
  }
  co_return !work->stopping();
}

}  // namespace verger::agent::beside
