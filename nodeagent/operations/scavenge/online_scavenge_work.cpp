#include "nodeagent/operations/scavenge/online_scavenge_work.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "engine/online/comparison.h"
#include "engine/online/installation.h"
#include "engine/online/native_run.h"
#include "engine/streams/find_scavenge_point.h"
#include "engine/streams/stream_names.h"
#include "nodeagent/client/judge.h"
#include "nodeagent/node/job_runner.h"
#include "nodeagent/operations/fresh_look.h"
#include "nodeagent/operations/jobs/paced_job.h"

namespace verger::agent {
namespace {

using nlohmann::json;
using online_scavenge::PreparedChunk;
using online_scavenge::Standing;
using std::chrono::milliseconds;

constexpr milliseconds kServerPoll{500};
constexpr milliseconds kFirstBackOff{1'000};
/// 1 + 2 + 4 + 8 + 16 seconds.
constexpr int kLockAttempts = 6;
/// A server that was killed comes back, or does not; until then its work waits.
constexpr milliseconds kServerReturn{300'000};
/// A server that refuses these refuses all.
constexpr std::size_t kMostRefusals = 3;
constexpr int kMostServerRuns = 3;
/// An unfinished scavenge of the server is finished first.
constexpr int kMostRounds = 3;
/// How long the end of the server's run may go untold.
constexpr int kSilentPolls = 20;
constexpr std::int32_t kRunEntries = 20;

// What the memory has.
constexpr const char* kBytesBefore = "bytes_before";
constexpr const char* kInstalled = "installed";  ///< the server is to do the rest
constexpr const char* kTarget = "target";        ///< number of the point that it is to finish
constexpr const char* kScavengeId = "scavenge_id";
constexpr const char* kSaved = "space_saved";
constexpr const char* kRemoved = "records_removed";
constexpr const char* kSwitched = "chunks_switched";
constexpr const char* kLeft = "chunks_left";

struct OnlineFailure {
  std::string code;
  std::string text;
};
/// nullopt: it went well.
using Ended = std::optional<OnlineFailure>;

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

/// A call of the engine that blocks, where jobs run.
class OneCall final : public Job {
 public:
  explicit OneCall(std::function<Result<void>()> call) : call_(std::move(call)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    VERGER_RETURN_IF_ERROR(call_());
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }

 private:
  std::function<Result<void>()> call_;
};

/// A job of engine/online as the agent runs it.
template <class Of>
class Metered final : public MeteredJob {
 public:
  Metered(std::string phase, std::shared_ptr<Of> job)
      : phase_(std::move(phase)), job_(std::move(job)) {}
  Result<StepOutcome> step(Budget budget) override { return job_->step(budget); }
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
};

struct Work {
  LocalNode node;
  QuerySettings settings;
  OnlineParameters parameters;
  json memory;
  online_scavenge::Machine machine;
  online_scavenge::DatabasePlace place;

  std::shared_ptr<client::RedactionClient> client{};
  std::unique_ptr<client::HeldChunkLock> lock{};
  int page_size = 0;

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

OnlineFailure stopped() { return {.code = "stopped", .text = "stopped on request"}; }

net::awaitable<Result<void>> call(Shared work, std::function<Result<void>()> engine) {
  co_return co_await work->node.jobs->run(std::make_shared<OneCall>(std::move(engine)),
                                          std::make_shared<node::StopFlag>());
}

template <class Of>
net::awaitable<Result<void>> run_job(Shared work, std::string phase, std::shared_ptr<Of> job) {
  auto metered = std::make_shared<Metered<Of>>(std::move(phase), std::move(job));
  work->node.control->report(metered->progress());
  // The chunk lock is held meanwhile: where the controller is gone it comes to its end all the
  // same.
  auto paced = std::make_shared<PacedJob>(std::move(metered), work->node.control, work->node.clock,
                                          PacedJob::Lease::kNone);
  co_return co_await work->node.jobs->run(std::move(paced), work->node.control->stop_flag());
}

net::awaitable<Result<void>> remove_shadow(Shared work) {
  co_return co_await call(work, [work] {
    return online_scavenge::remove_shadow(work->machine.files, work->place.database);
  });
}

/// The server answers; false: it did not come back, or the operation is stopped.
net::awaitable<bool> server_is_there(Shared work) {
  for (milliseconds waited{0}; work->node.inspection() == nullptr; waited += kServerPoll) {
    if (work->stopping() || waited >= kServerReturn) {
      co_return false;
    }
    work->report("waiting for the server");
    co_await work->node.timers.sleep_for(kServerPoll);
  }
  co_return !work->stopping();
}

/// Takes the chunk lock, again while another has it.
net::awaitable<Ended> take_lock(Shared work) {
  std::string why;
  auto pause = kFirstBackOff;
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (attempt > 0) {
      work->report("waiting for the chunk lock");
      for (milliseconds waited{0}; waited < pause && !work->stopping(); waited += kServerPoll) {
        co_await work->node.timers.sleep_for(kServerPoll);
      }
      pause *= 2;
    }
    if (work->stopping()) {
      co_return stopped();
    }
    work->drop_lock();
    auto connected = work->node.online->connect(co_await net::this_coro::executor);
    if (!connected) {
      why = connected.error().message;
      continue;
    }
    work->client = *std::move(connected);
    auto taken = co_await work->client->lock();
    if (taken.done()) {
      work->lock = std::move(*taken.value);
      VERGER_FAILPOINT("online.lock.taken");
      co_return std::nullopt;
    }
    why = taken.why;
    if (taken.refused() && taken.code != "chunk_lock_held" && taken.code != "unreachable" &&
        taken.code != "not_ready") {
      co_return OnlineFailure{.code = "refused", .text = why};
    }
  }
  co_return OnlineFailure{.code = "lock_held",
                          .text = fmt::format("the node's chunk lock could not be taken: {}", why)};
}

/// Makes the shadow and scavenges it. False: there is nothing to switch or to install.
net::awaitable<Result<bool>> prepare(Shared work, streams::ScavengePoint point) {
  auto shadow = std::make_shared<online_scavenge::ShadowJob>(work->machine, work->place);
  VERGER_CO_RETURN_IF_ERROR(co_await run_job(work, "shadow", std::move(shadow)));
  VERGER_FAILPOINT("online.shadow.made");
  const auto threads = work->parameters.threads;
  online_scavenge::NativeRunOptions options{.threads = threads, .hash_in_background = true};
  if (work->page_size > 0) {
    options.state.page_size = work->page_size;
  }
  auto native = std::make_shared<online_scavenge::NativeRunJob>(
      work->machine, work->place, point, options,
      threads > 1 ? work->node.jobs->make_parallel(threads) : nullptr);
  VERGER_CO_RETURN_IF_ERROR(co_await run_job(work, "scavenge", native));
  work->preparation = native->preparation();
  const auto stage = native->stage();
  native.reset();
  VERGER_FAILPOINT("online.native.done");
  if (stage != scavenge::Stage::kMergingChunks) {
    co_return false;  // reached, or left behind this stage by the server
  }
  auto comparison = std::make_shared<online_scavenge::ComparisonJob>(work->machine, work->place,
                                                                     work->preparation);
  VERGER_CO_RETURN_IF_ERROR(co_await run_job(work, "compare", comparison));
  work->preparation = comparison->preparation();
  VERGER_FAILPOINT("online.compare.done");
  co_return true;
}

/// What an earlier agent, or this one before it lost the lock, has prepared.
net::awaitable<Result<std::optional<online_scavenge::Resumable>>> look_for_left_over(Shared work) {
  const auto found = std::make_shared<std::optional<online_scavenge::Resumable>>();
  VERGER_CO_RETURN_IF_ERROR(co_await call(work, [work, found]() -> Result<void> {
    VERGER_TRY(*found, online_scavenge::find_resumable(work->machine.files, work->place));
    return {};
  }));
  co_return std::move(*found);
}

/// The lock was lost in the middle. What was prepared has to hold still once it is taken again.
net::awaitable<Ended> take_lock_again(Shared work) {
  work->drop_lock();
  if (!co_await server_is_there(work)) {
    co_return work->stopping()
        ? stopped()
        : OnlineFailure{.code = "no_answer",
                        .text = "the server does not answer, since chunks were switched"};
  }
  if (auto failed = co_await take_lock(work)) {
    co_return failed;
  }
  const auto left_over = co_await look_for_left_over(work);
  if (!left_over) {
    co_return failure_of(left_over.error());
  }
  if (!*left_over) {
    co_return OnlineFailure{
        .code = "lock_held",
        .text =
            "another scavenge has worked on the node since its chunk lock was lost; "
            "chunks that were switched stay, and the next scavenge does the rest"};
  }
  co_return std::nullopt;
}

/// Rests after a switch as the throttle says.
net::awaitable<void> rest_after(Shared work, std::uint64_t bytes, std::chrono::nanoseconds took) {
  using Seconds = std::chrono::duration<double>;
  const auto throttle = work->node.control->throttle();
  Seconds due = Seconds(took) * ((100.0 - throttle.percent) / throttle.percent);
  if (throttle.bytes_per_second > 0) {
    due = std::max(
        due, Seconds(static_cast<double>(bytes) / static_cast<double>(throttle.bytes_per_second)) -
                 Seconds(took));
  }
  while (due > Seconds(0) && !work->stopping() && work->node.control->throttle() == throttle) {
    const auto piece = std::min<Seconds>(due, kServerPoll);
    co_await work->node.timers.sleep_for(std::chrono::ceil<milliseconds>(piece));
    due -= piece;
  }
}

/// One chunk that waits. A refusal, or a lost connection, leaves the lock lost.
net::awaitable<Ended> switch_chunk(Shared work, PreparedChunk chunk) {
  const auto name = online_scavenge::offered_name(work->machine.random.uuid().to_string());
  const auto offered = co_await call(work, [work, chunk, name] {
    return online_scavenge::offer_chunk(work->machine.files, work->place.database, chunk, name);
  });
  if (!offered) {
    co_return failure_of(offered.error());
  }
  const auto began = work->node.clock.monotonic();
  const auto switched = co_await work->lock->switch_chunk(chunk.source.name, name);
  VERGER_FAILPOINT("online.switch.answered");
  work->lock_is_lost = !switched.done();
  if (switched.done()) {
    work->node.log.info("a scavenged chunk was switched in", {{"chunk", chunk.source.name}});
    co_await rest_after(work, chunk.made.size, work->node.clock.monotonic() - began);
    co_return std::nullopt;
  }
  if (!switched.refused()) {
    // The server may be about to rename it; what became of it is seen when the lock is taken again.
    work->node.log.warning("what became of a switch is not known",
                           {{"chunk", chunk.source.name}, {"reason", switched.why}});
    co_return std::nullopt;
  }
  const auto removed = co_await call(work, [work, name]() -> Result<void> {
    return work->machine.files.remove(work->place.database / name);
  });
  if (!removed && removed.error().code != Errc::kNotFound) {
    work->node.log.warning("an offered chunk file was not removed",
                           {{"reason", removed.error().message}});
  }
  if (switched.code == "switch_refused") {
    ++work->refusals;
    work->refusal = fmt::format("{}: {}", chunk.source.name, switched.why);
    work->left.insert(chunk.start);
    work->node.log.warning("the server refused a scavenged chunk", {{"reason", work->refusal}});
  }
  co_return std::nullopt;
}

net::awaitable<Result<Standing>> standing(Shared work, PreparedChunk chunk) {
  const auto found = std::make_shared<Standing>(Standing::kForeign);
  VERGER_CO_RETURN_IF_ERROR(co_await call(work, [work, chunk, found]() -> Result<void> {
    VERGER_TRY(*found,
               online_scavenge::standing_of(work->machine.files, work->place.database, chunk));
    return {};
  }));
  co_return *found;
}

/// What is switched by now, and what it was worth.
struct Switched {
  std::int64_t chunks = 0;
  std::int64_t saved = 0;
  std::int64_t removed = 0;
  std::int64_t bytes = 0;
};

/// All that waits, one after the other, until the operation is stopped. Without a failure the lock
/// is held, and `left` has all that is not switched.
net::awaitable<Ended> switch_chunks(Shared work, std::shared_ptr<Switched> sum) {
  const auto total = static_cast<std::int64_t>(work->preparation.chunks.size());
  for (const auto& chunk : work->preparation.chunks) {
    while (true) {
      if (!work->lock || work->lock_is_lost) {
        if (auto failed = co_await take_lock_again(work)) {
          // What is switched stays. The state is as before: the server does all of it again.
          co_return failed;
        }
      }
      const auto now = co_await standing(work, chunk);
      if (!now) {
        co_return failure_of(now.error());
      }
      if (*now == Standing::kSwitched) {
        ++sum->chunks;
        sum->saved += static_cast<std::int64_t>(chunk.source.size) -
                      static_cast<std::int64_t>(chunk.made.size);
        sum->removed += static_cast<std::int64_t>(chunk.records_removed);
        sum->bytes += static_cast<std::int64_t>(chunk.made.size);
        break;
      }
      if (*now == Standing::kForeign || work->left.contains(chunk.start) || work->stopping() ||
          work->refusals >= kMostRefusals || work->installed) {
        work->left.insert(chunk.start);
        break;
      }
      if (auto failed = co_await switch_chunk(work, chunk)) {
        co_return failed;
      }
    }
    if (work->stopping() && !work->cancelled()) {
      co_return stopped();  // the agent ends: the next one continues from here
    }
    work->report("switch", sum->chunks, total, "chunks", sum->bytes);
  }
  co_return std::nullopt;
}

/// The lock is an open call on one connection: another call on it is answered only by the process
/// that gave the lock.
net::awaitable<bool> lock_is_held(Shared work) {
  if (!work->lock || work->lock_is_lost) {
    co_return false;
  }
  std::vector<client::EventToFind> any{
      {.stream = std::string(streams::kScavengePointsStream), .number = EventNumber(0)}};
  const auto answer = co_await work->client->positions(std::move(any));
  co_return answer.code != "unreachable" && answer.code != "no_answer";
}

net::awaitable<Ended> install(Shared work) {
  work->report("state");
  if (!co_await lock_is_held(work)) {
    if (auto failed = co_await take_lock_again(work)) {
      co_return failed;
    }
  }
  const auto written = co_await call(work, [work]() -> Result<void> {
    VERGER_RETURN_IF_ERROR(online_scavenge::finish_state(work->machine.files, work->place.database,
                                                         work->preparation, work->left,
                                                         &index::hash_stream));
    return online_scavenge::install_state(work->machine, work->place, work->preparation);
  });
  if (!written && written.error().code != Errc::kNotFound) {
    co_return failure_of(written.error());
  }
  co_return std::nullopt;
}

net::awaitable<void> release(Shared work) {
  if (work->lock) {
    if (const auto released = co_await work->lock->release(); !released.done()) {
      // The end of the connection frees it in any case.
      work->node.log.warning("the chunk lock was not given back in order",
                             {{"reason", released.why}});
    }
  }
  work->drop_lock();
}

/// Up to where only the server works: locked, scavenged, switched, and the state in its place.
net::awaitable<Ended> work_beside(Shared work, streams::ScavengePoint point) {
  work->left.clear();
  work->refusals = 0;
  if (auto failed = co_await take_lock(work)) {
    co_return failed;
  }
  auto left_over = co_await look_for_left_over(work);
  if (!left_over) {
    co_return failure_of(left_over.error());
  }
  if (*left_over) {
    work->installed = (*left_over)->installed;
    work->preparation = (*left_over)->preparation;
    work->node.log.info("continuing an online scavenge that was interrupted",
                        {{"chunks", fmt::to_string(work->preparation.chunks.size())}});
  } else {
    const auto prepared = co_await prepare(work, point);
    if (!prepared) {
      if (!work->stopping() || work->cancelled()) {
        static_cast<void>(co_await remove_shadow(work));
      }
      co_return failure_of(prepared.error());
    }
    work->installed = !*prepared;  // the server has what it needs
  }
  const auto sum = std::make_shared<Switched>();
  if (auto failed = co_await switch_chunks(work, sum)) {
    co_return failed;
  }
  if (!work->installed && sum->chunks == 0 && !work->left.empty() &&
      (work->stopping() || work->refusals > 0)) {
    static_cast<void>(co_await remove_shadow(work));
    co_return work->stopping() ? stopped()
                               : OnlineFailure{.code = "refused", .text = work->refusal};
  }
  if (!work->installed) {
    if (auto failed = co_await install(work)) {
      co_return failed;
    }
  }
  work->memory[kSaved] = work->memory.value(kSaved, 0LL) + sum->saved;
  work->memory[kRemoved] = work->memory.value(kRemoved, 0LL) + sum->removed;
  work->memory[kSwitched] = work->memory.value(kSwitched, 0LL) + sum->chunks;
  work->memory[kLeft] = work->memory.value(kLeft, 0LL) +
                        static_cast<std::int64_t>(work->installed ? 0 : work->left.size());
  work->memory[kInstalled] = true;
  work->memory[kTarget] = work->preparation.point.number.value();
  work->remember();
  VERGER_FAILPOINT("online.state.remembered");
  co_await release(work);
  co_return work->cancelled() ? Ended(stopped()) : std::nullopt;
}

/// The end of the server's run, where its log tells it.
net::awaitable<std::optional<client::Outcome<client::ScavengeEnd>>> end_of_run(Shared work,
                                                                               std::string id) {
  const auto log = client::to_result(co_await work->node.client.scavenge_log(id, kRunEntries));
  if (!log) {
    co_return std::nullopt;
  }
  const bool ended = std::ranges::any_of(
      *log, [](const api::ScavengeEvent& event) { return event.type == "$scavengeCompleted"; });
  co_return ended ? std::optional(client::end_of_scavenge(*log, id)) : std::nullopt;
}

void report_run(const Shared& work) {
  const auto* inspection = work->node.inspection();
  const auto running = inspection == nullptr ? std::nullopt : inspection->running_scavenge();
  work->report("server", running ? running->chunks_done : -1, running ? running->chunks_total : -1,
               running ? "chunks" : "");
}

net::awaitable<bool> target_is_finished(Shared work) {
  const auto looked = co_await fresh_look(work->node);
  if (!looked) {
    co_return false;
  }
  const auto finished = (*looked)->last_finished_point();
  co_return finished && finished->number >= work->memory.value(kTarget, 0LL);
}

/// Has the server continue from the state, until that is Done. Starts it again where it was
/// restarted meanwhile.
net::awaitable<Ended> server_phase(Shared work) {
  std::string last;
  int silent = 0;
  for (int runs = 0; runs <= kMostServerRuns;) {
    if (work->stopping()) {
      const auto id = work->memory.value(kScavengeId, std::string());
      if (work->cancelled() && !id.empty()) {
        static_cast<void>(co_await work->node.client.stop_scavenge(id));
      }
      co_return stopped();
    }
    if (!co_await server_is_there(work)) {
      if (!work->stopping()) {
        co_return OnlineFailure{.code = "no_answer",
                                .text = "the server does not answer; its next scavenge continues"};
      }
      continue;
    }
    report_run(work);
    const auto current = client::to_result(co_await work->node.client.current_scavenge());
    if (!current || !current->id.empty()) {
      if (current && work->memory.value(kScavengeId, std::string()) != current->id) {
        work->memory[kScavengeId] = current->id;
        work->remember();
      }
      co_await work->node.timers.sleep_for(kServerPoll);
      continue;
    }
    const auto id = work->memory.value(kScavengeId, std::string());
    const auto end = id.empty() ? std::nullopt : co_await end_of_run(work, id);
    const bool finished = co_await target_is_finished(work);
    if (finished && (end || id.empty() || ++silent > kSilentPolls)) {
      if (end && end->value) {
        work->memory[kSaved] = work->memory.value(kSaved, 0LL) + end->value->space_saved;
      }
      co_return std::nullopt;
    }
    const bool succeeded = end && end->value && end->value->result == "Success";
    if (finished || (!id.empty() && (!end || succeeded) && ++silent <= kSilentPolls)) {
      co_await work->node.timers.sleep_for(kServerPoll);
      continue;
    }
    if (end) {
      last = end->why;
    }
    silent = 0;
    if (runs == kMostServerRuns) {
      break;
    }
    ++runs;
    client::ScavengeParameters how{.threads = work->parameters.threads, .sync_only = true};
    if (const auto percent = work->node.control->throttle().percent; percent < 100) {
      how.threads = 1;
      how.throttle_percent = percent;
    }
    const auto started = co_await work->node.client.start_scavenge(how);
    VERGER_FAILPOINT("online.server.started");
    if (started.value && !started.value->id.empty() && !started.refused()) {
      work->memory[kScavengeId] = started.value->id;
      work->remember();
      if (auto* inspection = work->node.inspection()) {
        inspection->expect_scavenge();
      }
    } else if (started.refused()) {
      last = started.why;
      if (started.code == "lacks_role" || started.code == "bad_credentials" ||
          started.code == "invalid") {
        co_return OnlineFailure{.code = "refused", .text = last};
      }
    }
    co_await work->node.timers.sleep_for(kServerPoll);
  }
  co_return OnlineFailure{
      .code = "refused",
      .text = fmt::format("the server did not finish what is left of the scavenge: "
                          "{}",
                          last)};
}

std::string result_text(const Shared& work, const node::NodeInspection& inspection) {
  json point;
  if (const auto finished = inspection.last_finished_point()) {
    point = {{"number", finished->number},
             {"position", finished->position},
             {"effectiveNow", finished->effective_now},
             {"threshold", finished->threshold}};
  }
  const auto& memory = work->memory;
  return json{{"point", std::move(point)},
              {"scavengeId", memory.value(kScavengeId, std::string())},
              {"spaceSaved", memory.value(kSaved, 0LL)},
              {"recordsRemoved", memory.value(kRemoved, 0LL)},
              {"bytesBefore", memory.value(kBytesBefore, -1LL)},
              {"bytesAfter", inspection.chunks().total_bytes},
              {"chunksSwitched", memory.value(kSwitched, 0LL)},
              {"chunksLeft", memory.value(kLeft, 0LL)}}
      .dump();
}

/// Room for what is written before the first old chunk goes: with several threads as many chunks at
/// a time, and copies of the open chunk and of the state. What more is needed shows while the
/// shadow is worked in, and then nothing of the node's has changed.
std::string space_problem(const Shared& work, const node::NodeInspection& inspection) {
  const auto space = work->machine.files.space(work->place.database);
  if (!space) {
    return {};
  }
  const auto state =
      work->machine.files.file_size(scavenge::ScavengeState::path_in(work->place.index));
  const auto chunks = inspection.chunks();
  const auto needed = static_cast<std::uint64_t>(std::max<std::int64_t>(chunks.largest_bytes, 0)) *
                          static_cast<std::uint64_t>(work->parameters.threads + 1) +
                      state.value_or(0);
  return space->available >= needed
             ? std::string()
             : fmt::format("{}: {} bytes are free, and at least {} are needed",
                           work->place.database.string(), space->available, needed);
}

/// One point: the one that is wanted, or an older one that the server has left unfinished.
net::awaitable<Ended> one_round(Shared work) {
  if (!work->memory.value(kInstalled, false)) {
    const auto looked = co_await fresh_look(work->node);
    if (!looked) {
      co_return failure_of(looked.error());
    }
    if (!work->memory.contains(kBytesBefore)) {
      work->memory[kBytesBefore] = (*looked)->chunks().total_bytes;
      work->remember();
    }
    const auto settings = co_await work->settings();
    if (!settings) {
      co_return failure_of(settings.error());
    }
    const auto* inspection = work->node.inspection();
    if (inspection == nullptr) {
      co_return OnlineFailure{.code = "unavailable",
                              .text = "the server does not answer; this needs it running"};
    }
    work->page_size = settings->page_size;
    auto problem =
        online_problem(work->node.online->look(), *inspection, *settings, work->parameters.point);
    if (!problem.empty()) {
      co_return OnlineFailure{.code = "not_supported", .text = std::move(problem)};
    }
    if (auto full = space_problem(work, *inspection); !full.empty()) {
      co_return OnlineFailure{.code = "no_space", .text = std::move(full)};
    }
    const auto points = inspection->scavenge_points();
    const auto point = points ? streams::find_scavenge_point(*points, work->parameters.point)
                              : Result<streams::ScavengePoint>(points.error());
    if (!point) {
      co_return failure_of(point.error());
    }
    if (auto failed = co_await work_beside(work, *point)) {
      work->drop_lock();
      co_return failed;
    }
  }
  if (auto failed = co_await server_phase(work)) {
    co_return failed;
  }
  VERGER_FAILPOINT("online.server.done");
  if (const auto removed = co_await remove_shadow(work); !removed) {
    work->node.log.warning("the shadow of an online scavenge was not removed",
                           {{"reason", removed.error().message}});
  }
  work->memory[kInstalled] = false;
  co_return std::nullopt;
}

}  // namespace

Result<OnlineParameters> parse_online_parameters(const std::string& parameters_json) {
  const auto asked = json::parse(parameters_json, nullptr, false);
  if (!asked.is_object() || !asked.contains("point") || !asked["point"].is_number_integer()) {
    return Error{Errc::kInvalidArgument,
                 "parameters of online_scavenge: \"point\", the number of a scavenge point in the "
                 "log, is missing"};
  }
  OnlineParameters out{.point = asked["point"].get<std::int64_t>()};
  const auto threads = asked.value("threads", json(1));
  if (!threads.is_number_integer() || threads < 1 || threads > 4) {
    return Error{Errc::kInvalidArgument, "threads must be 1 to 4"};
  }
  out.threads = threads.get<std::int32_t>();
  return out;
}

std::string online_problem(const external::OnlineLook& look, const node::NodeInspection& inspection,
                           const ScavengeSettings& settings, std::int64_t point) {
  if (!look.problem.empty()) {
    return look.problem;
  }
  if (!look.one_file_system) {
    return fmt::format(
        "{} and {} are in different file systems, and files of both are to be "
        "linked into one directory",
        inspection.database_directory().string(), inspection.index_directory().string());
  }
  if (settings.ignores_hard_deletes) {
    return "the server runs with UnsafeIgnoreHardDelete, which only its own scavenge knows";
  }
  const auto points = inspection.scavenge_points();
  if (!points) {
    return points.error().message;
  }
  const auto found = streams::find_scavenge_point(*points, point);
  if (!found) {
    return found.error().message;
  }
  const auto chunks = inspection.chunks();
  if (chunks.chunk_size > 0 && found->position.value() / chunks.chunk_size >=
                                   inspection.positions().writer.value() / chunks.chunk_size) {
    return fmt::format("the chunk with scavenge point {} is not complete on this node", point);
  }
  return {};
}

net::awaitable<std::optional<OnlineEnd>> scavenge_online(LocalNode node, QuerySettings settings,
                                                         OnlineParameters parameters,
                                                         nlohmann::json memory) {
  const auto& access = *node.online;
  const auto machine = access.machine();
  const auto work = std::make_shared<Work>(Work{
      .node = node,
      .settings = std::move(settings),
      .parameters = parameters,
      .memory = std::move(memory),
      .machine = {machine.files, machine.clock, machine.random, machine.log},
      .place = {.database = access.place().database, .index = access.place().index_directory()}});
  for (int round = 0; round < kMostRounds; ++round) {
    if (!co_await server_is_there(work) && !work->stopping()) {
      co_return OnlineEnd{.code = "unavailable",
                          .text = "the server does not answer; this needs it running"};
    }
    auto failed = work->stopping() ? Ended(stopped()) : co_await one_round(work);
    work->drop_lock();
    if (failed) {
      if (work->stopping() && !work->cancelled()) {
        co_return std::nullopt;
      }
      const bool useless = failed->code == "conflict" || failed->code == "corruption" ||
                           failed->code == "not_supported" || failed->code == "refused";
      if (work->cancelled() || useless) {
        // The state of what was switched is in place, or nothing was: the shadow is of no more use.
        static_cast<void>(co_await remove_shadow(work));
        failed = work->cancelled() ? Ended(stopped()) : failed;
      }
      co_return OnlineEnd{.code = failed->code, .text = failed->text};
    }
    const auto looked = co_await fresh_look(work->node);
    const auto finished = looked ? (*looked)->last_finished_point() : std::nullopt;
    if (finished && finished->number >= parameters.point) {
      co_return OnlineEnd{.done = true, .text = result_text(work, **looked)};
    }
  }
  co_return OnlineEnd{.code = "interrupted",
                      .text =
                          "older scavenges of the node were finished, and this point is not "
                          "reached; repeat it"};
}

}  // namespace verger::agent
