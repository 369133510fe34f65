#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "engine/online/native_run.h"
#include "nodeagent/external/online_access.h"
#include "nodeagent/operations/jobs/paced_job.h"
#include "nodeagent/operations/online_scavenge/online_scavenge_work.h"

/// What the parts of an online scavenge share.
namespace verger::agent::beside {

/// What the memory of the operation has.
namespace memory {
inline constexpr const char* kBytesBefore = "bytes_before";
inline constexpr const char* kInstalled = "installed";  ///< the server is to do the rest
inline constexpr const char* kTarget = "target";  ///< number of the point that it is to finish
inline constexpr const char* kScavengeId = "scavenge_id";
inline constexpr const char* kSaved = "space_saved";
inline constexpr const char* kRemoved = "records_removed";
inline constexpr const char* kSwitched = "chunks_switched";
inline constexpr const char* kLeft = "chunks_left";
}  // namespace memory

/// Between two looks at the server, and the longest time for which a cancel goes unseen. The
/// shortest of what is waited for, the server's last stages on a small database, takes seconds; a
/// look is one request on a connection that stays open.
inline constexpr std::chrono::milliseconds kServerPoll{500};

struct OnlineFailure {
  std::string code;
  std::string text;
};
/// nullopt: it went well.
using Ended = std::optional<OnlineFailure>;

OnlineFailure failure_of(const Error& error);
OnlineFailure stopped();

/// The room that a running server needs while new chunks are written beside it: one whose disk is
/// full ends.
class RoomWatch {
 public:
  RoomWatch(FileSystem& files, Clock& clock, Path directory, std::uint64_t kept_free)
      : files_(files), clock_(clock), directory_(std::move(directory)), kept_free_(kept_free) {}
  /// Error: kNoSpace: less is free. Looks at the disk once a second at most: what is written in
  /// that time is small against what is kept free.
  Result<void> check();

 private:
  FileSystem& files_;
  Clock& clock_;
  Path directory_;
  std::uint64_t kept_free_;
  Monotonic next_look_{};
};

/// A job of engine/online as the agent runs it.
template <class Of>
class Metered final : public MeteredJob {
 public:
  Metered(std::string phase, std::shared_ptr<Of> job, RoomWatch room)
      : phase_(std::move(phase)), job_(std::move(job)), room_(std::move(room)) {}
  Result<StepOutcome> step(Budget budget) override {
    VERGER_RETURN_IF_ERROR(room_.check());
    return job_->step(budget);
  }
  [[nodiscard]] JobProgress progress() const override {
    const auto seen = job_->progress();
    return {.phase = phase_,
            .done = static_cast<std::int64_t>(seen.done),
            .total = seen.total > 0 ? static_cast<std::int64_t>(seen.total) : -1,
            .unit = seen.unit,
            .bytes = static_cast<std::int64_t>(seen.bytes)};
  }

 private:
  std::string phase_;
  std::shared_ptr<Of> job_;
  RoomWatch room_;
};

struct Work {
  LocalNode node;
  QuerySettings settings;
  OnlineParameters parameters;
  nlohmann::json memory;
  online_scavenge::Machine machine;
  online_scavenge::DatabasePlace place;

  std::shared_ptr<client::RedactionClient> client{};
  std::unique_ptr<client::HeldChunkLock> lock{};
  int page_size = 0;
  std::uint64_t kept_free = 0;  ///< bytes of the disk that are left to the server

  online_scavenge::Preparation preparation{};
  std::set<std::int32_t> left{};  ///< first numbers of the chunks that are left to the server
  bool installed = false;         ///< the state is in its place: nothing more is switched
  std::size_t refusals = 0;
  std::string refusal{};

  [[nodiscard]] bool stopping() const { return node.control->stopping(); }
  [[nodiscard]] bool cancelled() const { return node.control->cancelled(); }
  void remember() const {
    if (node.remember) {
      node.remember(memory.dump());
    }
  }
  void report(std::string phase, std::int64_t done = -1, std::int64_t total = -1,
              std::string unit = {}, std::int64_t bytes = -1) const {
    node.control->report({.phase = std::move(phase),
                          .done = done,
                          .total = total,
                          .unit = std::move(unit),
                          .bytes = bytes});
  }
  bool lock_is_lost = false;  ///< a switch was refused, or not answered
  void drop_lock() {
    lock_is_lost = false;
    lock.reset();
    client.reset();
  }
};
using Shared = std::shared_ptr<Work>;

/// A call of the engine that blocks, where jobs run.
net::awaitable<Result<void>> call(Shared work, std::function<Result<void>()> engine);

template <class Of>
net::awaitable<Result<void>> run_job(Shared work, std::string phase, std::shared_ptr<Of> job) {
  auto metered = std::make_shared<Metered<Of>>(
      std::move(phase), std::move(job),
      RoomWatch(work->machine.files, work->node.clock, work->place.database, work->kept_free));
  work->node.control->report(metered->progress());
  // The chunk lock is held meanwhile: where the controller is gone it comes to its end all the
  // same.
  auto paced = std::make_shared<PacedJob>(std::move(metered), work->node.control, work->node.clock,
                                          PacedJob::Lease::kNone);
  co_return co_await work->node.jobs->run(std::move(paced), work->node.control->stop_flag());
}

net::awaitable<Result<void>> remove_shadow(Shared work);
/// The server answers; false: it did not come back, or the operation is stopped.
net::awaitable<bool> server_is_there(Shared work);

}  // namespace verger::agent::beside
