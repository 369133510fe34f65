#include "nodeagent/node/scavenger.h"

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

#include "engine/streams/latest_scavenge_point.h"

namespace verger::node {
namespace {

using nlohmann::ordered_json;

/// The server's backend pool holds so many connections; more threads end its run (node-interface.md
/// §1.4).
constexpr int kMostThreads = 4;
constexpr int kReadBackAttempts = 31;

api::ScavengePoint api_point(const scavenge::ScavengePoint& point) {
  return {point.number.value(), point.position.value(), format_ticks(point.effective_now),
          point.threshold};
}

/// A server that died behind a point's record resumes in its chunk: no node scavenges to that point
/// until the chunk is full, and the job says so.
bool records_follow_in_its_chunk(const log::TransactionLog& log, LogPosition point) {
  const auto chunk = log.chunk_at(point);
  Bytes buffer;
  const auto record = log.read(point, buffer);
  return chunk != nullptr && !chunk->completed() && record && record->next < log.end();
}

}  // namespace

std::string_view phase_name(scavenge::Stage stage) {
  switch (stage) {
    case scavenge::Stage::kAccumulating:
      return "Accumulation Phase";
    case scavenge::Stage::kCalculating:
      return "Calculation Phase";
    case scavenge::Stage::kExecutingChunks:
      return "Chunk execution Phase";
    case scavenge::Stage::kMergingChunks:
      return "Chunk merging Phase";
    case scavenge::Stage::kExecutingIndex:
      return "Index execution Phase";
    case scavenge::Stage::kCleaning:
      return "Cleaning Phase";
    case scavenge::Stage::kDone:
      break;
  }
  return "Idle";
}

/// One run. The job's observer is called in the stepping thread and posts to the node's executor.
struct Scavenger::Run : scavenge::ScavengeEvents {
  std::shared_ptr<Scavenger> scavenger;
  net::any_io_executor executor;
  std::string id;
  ScavengeRequest request;
  std::shared_ptr<StopFlag> stop = std::make_shared<StopFlag>();
  std::unique_ptr<scavenge::ScavengeRun> scavenge;
  std::weak_ptr<Run> self;
  bool ended = false;
  // On the node's executor.
  ChunkLock::Held chunk_lock;
  std::optional<scavenge::ScavengePoint> point;
  scavenge::Stage stage = scavenge::Stage::kDone;
  std::int64_t chunks_done = 0;
  std::int64_t chunks_total = 0;
  std::int64_t space_saved = 0;
  std::int32_t max_chunk = 0;

  /// Events that come after the run's end are dropped.
  template <class Action>
  void post(Action action) {
    net::post(executor, [weak = self, action = std::move(action)] {
      const auto run = weak.lock();
      if (run && run->scavenger->context_.serving()) {
        action(*run);
      }
    });
  }

  void stage_started(scavenge::Stage now) override {
    // Done is what the run is once it has ended: until then the node would neither be at the point
    // nor have finished it.
    if (now == scavenge::Stage::kDone) {
      return;
    }
    post([now](Run& run) {
      run.stage = now;
      run.scavenger->context_.env.log.info("scavenge phase",
                                           {{"node", run.scavenger->context_.self},
                                            {"scavenge", run.id},
                                            {"phase", std::string(phase_name(now))}});
    });
  }
  void chunk_executed(const scavenge::ChunkExecuted& chunk) override {
    post([chunk](Run& run) {
      run.chunks_done += chunk.end - chunk.start + 1;
      run.space_saved += chunk.space_saved;
      run.max_chunk = std::max(run.max_chunk, chunk.end);
      run.scavenger->history_.report(run.id, "$scavengeChunksCompleted",
                                     {{"scavengeId", run.id},
                                      {"chunkStartNumber", chunk.start},
                                      {"chunkEndNumber", chunk.end},
                                      {"timeTaken", format_duration(chunk.time_taken)},
                                      {"wasScavenged", true},
                                      {"spaceSaved", chunk.space_saved},
                                      {"nodeEndpoint", run.scavenger->context_.self},
                                      {"errorMessage", ""}},
                                     false);
    });
  }
  void chunks_merged(const scavenge::ChunksMerged& chunks) override {
    post([chunks](Run& run) {
      run.space_saved += chunks.space_saved;
      run.scavenger->history_.report(run.id, "$scavengeMergeCompleted",
                                     {{"scavengeId", run.id},
                                      {"chunkStartNumber", chunks.start},
                                      {"chunkEndNumber", chunks.end},
                                      {"timeTaken", format_duration(chunks.time_taken)},
                                      {"spaceSaved", chunks.space_saved},
                                      {"wasMerged", chunks.merged},
                                      {"nodeEndpoint", run.scavenger->context_.self},
                                      {"errorMessage", chunks.error}},
                                     false);
    });
  }
  void table_scavenged(const scavenge::TableScavenged& table) override {
    post([table](Run& run) {
      run.space_saved += table.space_saved;
      run.scavenger->history_.report(run.id, "$scavengeIndexCompleted",
                                     {{"scavengeId", run.id},
                                      {"level", table.level},
                                      {"index", table.index},
                                      {"timeTaken", format_duration(table.time_taken)},
                                      {"entriesDeleted", table.entries_deleted},
                                      {"entriesKept", table.entries_kept},
                                      {"spaceSaved", table.space_saved},
                                      {"wasScavenged", table.scavenged},
                                      {"nodeEndpoint", run.scavenger->context_.self},
                                      {"errorMessage", table.error}},
                                     false);
    });
  }
};

Scavenger::Scavenger(NodeContext& context, WriteFunction write)
    : context_(context), write_(write), history_(context, std::move(write)) {
  read_checkpoint();
}
Scavenger::~Scavenger() = default;

void Scavenger::read_checkpoint() {
  const auto& index = context_.db().stream_index();
  const auto path = scavenge::ScavengeState::path_in(index.directory());
  const auto exists = context_.env.files.exists(path);
  if (!exists || !*exists) {
    checkpoint_.reset();
    return;
  }
  scavenge::StateOptions options;
  options.page_size = static_cast<int>(context_.options.scavenge_backend_page_size);
  auto state = scavenge::ScavengeState::open(context_.env.files, index.directory(),
                                             index.options().hash, options);
  auto checkpoint =
      state ? (*state)->checkpoint() : Result<std::optional<scavenge::Checkpoint>>(state.error());
  if (!checkpoint) {
    context_.env.log.warning("scavenge state not read", {{"reason", checkpoint.error().message}});
    return;
  }
  checkpoint_ = *checkpoint;
}

std::optional<api::UnfinishedScavenge> Scavenger::unfinished() const {
  if (run_ && !run_->ended && run_->point) {
    return api::UnfinishedScavenge{api_point(*run_->point),
                                   std::string(scavenge::to_string(run_->stage))};
  }
  if (checkpoint_ && checkpoint_->stage != scavenge::Stage::kDone) {
    return api::UnfinishedScavenge{api_point(checkpoint_->point),
                                   std::string(scavenge::to_string(checkpoint_->stage))};
  }
  return std::nullopt;
}

std::optional<api::ScavengePoint> Scavenger::last_finished() const {
  if (checkpoint_ && checkpoint_->stage == scavenge::Stage::kDone) {
    return api_point(checkpoint_->point);
  }
  return std::nullopt;
}

std::optional<api::RunningScavenge> Scavenger::running() const {
  if (!run_) {
    return std::nullopt;
  }
  api::RunningScavenge running;
  running.id = run_->id;
  running.phase = phase_name(run_->stage);
  running.chunks_done = run_->chunks_done;
  running.chunks_total = run_->chunks_total;
  running.bytes_saved = run_->space_saved;
  return running;
}

Result<std::string> Scavenger::start(ScavengeRequest request) {
  if (run_) {
    return Error{Errc::kConflict, "Scavenge is already running"};
  }
  auto lock =
      context_.options.misbehaviour.chunk_lock_held ? nullptr : context_.chunk_lock.try_take();
  if (lock == nullptr) {
    return Error{Errc::kConflict, "Failed to acquire the chunk switch lock"};
  }
  run_ = std::make_shared<Run>();
  run_->chunk_lock = std::move(lock);
  run_->scavenger = context_.keep(*this);
  run_->executor = context_.env.executor;
  run_->self = run_;
  run_->id = context_.env.random.uuid().to_string();
  run_->request = request;
  current_ = run_->id;
  context_.spawn(run(run_->scavenger, run_));
  return current_;
}

void Scavenger::request_stop() {
  if (run_) {
    run_->stop->request();
    if (run_->scavenge && run_->scavenge->job() != nullptr) {
      run_->scavenge->job()->request_stop();
    }
    context_.changed.notify();
  }
}

void Scavenger::abandon() {
  request_stop();
  run_.reset();
  history_.abandon();
}

void Scavenger::state_changed(api::NodeState state) {
  if (!looked_for_dead_runs_ &&
      (state == api::NodeState::kLeader || state == api::NodeState::kFollower)) {
    looked_for_dead_runs_ = true;
    history_.close_dead_runs([this] { return current_; });
  }
}

net::awaitable<std::optional<std::string>> Scavenger::stop(std::shared_ptr<Scavenger> scavenger,
                                                           std::string id) {
  auto& context = scavenger->context_;
  const auto run = scavenger->run_;
  if (!run || run->ended || (id != "current" && id != run->id)) {
    co_return std::nullopt;
  }
  scavenger->request_stop();
  while (!run->ended && context.serving()) {
    co_await context.changed.wait();
  }
  co_return run->id;
}

net::awaitable<Result<scavenge::ScavengePoint>> Scavenger::create_point(
    std::shared_ptr<Scavenger> scavenger, std::shared_ptr<Run> run, std::int64_t expected_version) {
  const auto& context = scavenger->context_;
  WriteRequest request;
  request.kind = WriteRequest::Kind::kScavengePoint;
  request.expected_version = expected_version;
  request.threshold = run->request.threshold;
  const auto reply = co_await scavenger->write_(std::move(request));
  if (reply.status != WriteStatus::kDone) {
    const auto why = reply.status == WriteStatus::kWrongVersion ? "another node was faster"
                     : reply.status == WriteStatus::kNotReady   ? "no leader takes writes"
                                                                : reply.message;
    co_return Error{Errc::kUnavailable,
                    fmt::format("Failed to write a new scavenge point (expected version {}): {}",
                                expected_version, why)};
  }
  // The leader has it; here it appears with replication.
  const auto& timings = context.options.timings;
  for (int attempt = 0; attempt < kReadBackAttempts; ++attempt) {
    const auto latest = streams::latest_scavenge_point(context.db());
    if (!latest) {
      co_return latest.error();
    }
    if (*latest && (*latest)->number.value() == expected_version + 1) {
      co_return **latest;
    }
    if (run->stop->requested()) {
      co_return Error{Errc::kCancelled, "stopped"};
    }
    co_await context.env.timers.sleep_for(attempt == 0 ? timings.scavenge_point_first_look
                                                       : timings.scavenge_point_retry);
    if (!context.serving()) {
      co_return Error{Errc::kCancelled, "stopped"};
    }
  }
  co_return Error{Errc::kUnavailable,
                  "Unable to read back new scavenge point: this node is behind the leader"};
}

/// The point's chunk is scavenged, too: no other leader may take its end back, either.
net::awaitable<Result<void>> Scavenger::end_of_chunk_committed(std::shared_ptr<Scavenger> scavenger,
                                                               std::shared_ptr<Run> run,
                                                               LogPosition point) {
  const auto& context = scavenger->context_;
  const auto size = context.log().chunk_size();
  const LogPosition end((point.value() / size + 1) * size);
  while (context.db().committed() < end) {
    if (run->stop->requested() || !context.serving()) {
      co_return Error{Errc::kCancelled, "stopped"};
    }
    if (records_follow_in_its_chunk(context.log(), point)) {
      break;
    }
    co_await scavenger->context_.changed.wait();
  }
  co_return Result<void>();
}

net::awaitable<Result<void>> Scavenger::work(std::shared_ptr<Scavenger> scavenger,
                                             std::shared_ptr<Run> run) {
  const auto& context = scavenger->context_;
  scavenge::StateOptions state_options;
  state_options.page_size = static_cast<int>(context.options.scavenge_backend_page_size);
  state_options.cache_size = static_cast<std::int64_t>(context.options.scavenge_backend_cache_size);
  state_options.names_cache = context.options.scavenge_hash_users_cache_capacity;
  VERGER_CO_TRY(run->scavenge, scavenge::ScavengeRun::open(context.db(),
                                                           {.files = context.env.files,
                                                            .clock = context.env.clock,
                                                            .random = context.env.random,
                                                            .log = context.env.log},
                                                           state_options));
  scavenger->history_.begin(run->id);
  scavenger->history_.report(run->id, "$scavengeStarted",
                             {{"scavengeId", run->id}, {"nodeEndpoint", context.self}}, true);

  VERGER_CO_TRY(const auto decision, run->scavenge->find_start(run->request.sync_only));
  std::optional<scavenge::ScavengePoint> point = decision.point;
  if (decision.kind == scavenge::StartKind::kNothing) {
    co_return Result<void>();
  }
  if (decision.kind == scavenge::StartKind::kCreatePoint) {
    auto created = co_await create_point(scavenger, run, decision.expected_version);
    if (!created) {
      co_return created.error();
    }
    point = *created;
  }
  VERGER_CO_RETURN_IF_ERROR(co_await end_of_chunk_committed(scavenger, run, point->position));
  run->point = point;
  run->stage = run->scavenge->is_unfinished() ? run->scavenge->checkpoint()->stage
                                              : scavenge::Stage::kAccumulating;
  run->chunks_total = context.log().chunk_of(point->position).value() + 1;
  context.env.log.info("scavenging", {{"node", context.self},
                                      {"scavenge", run->id},
                                      {"point", std::to_string(point->number.value())}});

  scavenge::ScavengeOptions options;
  options.threads = std::min(run->request.threads, kMostThreads);
  options.throttle_percent = run->request.throttle_percent;
  options.merge_chunks = !context.options.disable_scavenge_merging;
  options.unsafe_ignore_hard_delete = context.options.unsafe_ignore_hard_delete;
  options.state = state_options;
  const bool too_many_threads = run->request.threads > kMostThreads;
  if (too_many_threads) {
    options.stop_after = scavenge::StopAfter{scavenge::Stage::kCalculating, 0};
  }
  auto& job =
      run->scavenge->begin(*point, options, *run, context.env.jobs.make_parallel(options.threads));
  if (run->stop->requested()) {
    job.request_stop();
  }
  // The runner's copy keeps run and node alive until the last step is over.
  const auto outcome = co_await context.env.jobs.run(std::shared_ptr<Job>(run, &job), run->stop);
  if (!outcome && outcome.error().code == Errc::kCancelled && too_many_threads &&
      !run->stop->requested()) {
    co_return Error{Errc::kInvalidArgument,
                    "Object pool 'scavenge backend pool' has reached its max limit for items: 5."};
  }
  co_return outcome;
}

net::awaitable<void> Scavenger::run(std::shared_ptr<Scavenger> scavenger,
                                    std::shared_ptr<Run> run) {
  auto& context = scavenger->context_;
  const auto began = context.now();
  const auto outcome = co_await work(scavenger, run);
  // What the last step posted comes before the run's last word.
  co_await net::post(context.env.executor, net::use_awaitable);
  if (!context.serving()) {
    run->ended = true;
    co_return;
  }
  const bool stopped = !outcome && outcome.error().code == Errc::kCancelled;
  const auto* result = outcome ? "Success" : stopped ? "Stopped" : "Interrupted";
  ordered_json error;
  if (!outcome && !stopped) {
    error = fmt::format("Error while scavenging DB: {}.", outcome.error().message);
  }
  const auto took = std::chrono::duration_cast<std::chrono::nanoseconds>(context.now() - began);
  scavenger->history_.report(run->id, "$scavengeCompleted",
                             {{"scavengeId", run->id},
                              {"nodeEndpoint", context.self},
                              {"result", result},
                              {"error", error},
                              {"timeTaken", format_duration(took.count() / 100)},
                              {"spaceSaved", run->space_saved},
                              {"maxChunkScavenged", run->max_chunk}},
                             true);
  context.env.log.info("scavenge ended",
                       {{"node", context.self},
                        {"scavenge", run->id},
                        {"result", result},
                        {"error", outcome ? std::string() : outcome.error().message}});
  run->scavenge.reset();
  scavenger->read_checkpoint();
  run->chunk_lock.reset();
  run->ended = true;
  context.changed.notify();
  if (stopped && context.options.misbehaviour.stop_lingers.count() > 0) {
    co_await context.env.timers.sleep_for(context.options.misbehaviour.stop_lingers);
    if (!context.serving()) {
      co_return;
    }
  }
  scavenger->run_.reset();
  scavenger->current_.clear();
}

}  // namespace verger::node
