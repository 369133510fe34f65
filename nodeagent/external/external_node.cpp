#include "nodeagent/external/external_node.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "engine/log/writer_position.h"
#include "nodeagent/api/json_text.h"
#include "nodeagent/client/judge.h"
#include "nodeagent/external/scavenge_count.h"
#include "nodeagent/http/task_group.h"

namespace verger::external {
namespace {

using nlohmann::json;

/// Up to this size scavenging.db is copied; a larger one is read where it lies.
constexpr std::uint64_t kProgressLimit = 64ULL * 1024 * 1024;
constexpr std::chrono::milliseconds kLeastRest{1000};
constexpr std::chrono::milliseconds kFirstAnswer{20};
constexpr std::chrono::milliseconds kCertificateInterval{10'000};
/// Between two questions to a server that does not scavenge.
constexpr std::chrono::seconds kWhileIdle{30};

/// Without a proof, or with one of the contrary, it is looked again after so long: each look is two
/// lines in the server's log.
constexpr std::chrono::seconds kUntilNextProof{30};

/// Reads what only a thread that may block should: links of /proc, and a checkpoint.
class DirectoryLook final : public Job {
 public:
  using Prove =
      std::function<Result<void>(const ConfiguredDirectories&, const NodeDirectories& reported)>;
  DirectoryLook(FileSystem& files, ConfiguredDirectories ours, NodeDirectories reported,
                Prove prove)
      : files_(files),
        ours_(std::move(ours)),
        reported_(std::move(reported)),
        prove_(std::move(prove)) {}
  Result<StepOutcome> step(Budget /*budget*/) override {
    VERGER_RETURN_IF_ERROR(prove_ ? prove_(ours_, reported_)
                                  : external::prove_directories(ours_, reported_));
    VERGER_TRY(position_, log::writer_position(files_, ours_.place.database));
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  [[nodiscard]] LogPosition position() const { return position_; }

 private:
  FileSystem& files_;
  ConfiguredDirectories ours_;
  NodeDirectories reported_;
  Prove prove_;
  LogPosition position_{0};
};

}  // namespace

class ExternalNode::Impl final : public node::NodeInspection,
                                 public std::enable_shared_from_this<Impl> {
 public:
  Impl(ExternalOptions with, ExternalEnvironment from)
      : options(std::move(with)),
        env(from),
        client(env.client, options.node, options.credentials, {}, options.request_deadline),
        index(options.place.index_directory()),
        certificate(env.executor, options.node, options.certificate_file, options.request_deadline),
        tasks(env.executor, env.log, "external node") {}

  // --- NodeInspection
  net::awaitable<Result<void>> refresh() override { return look_at_files(shared_from_this()); }
  net::awaitable<Result<void>> prove_directories() override { return prove(shared_from_this()); }
  void expect_scavenge() override { next_current = Monotonic{}; }
  std::string instance_id() const override { return self ? self->instance_id : std::string(); }
  api::NodeState state() const override { return self ? self->state : api::NodeState::kUnknown; }
  node::NodePositions positions() const override {
    node::NodePositions out;
    if (self) {
      out.writer = LogPosition(self->writer_checkpoint);
      out.chaser = LogPosition(self->chaser_checkpoint);
      out.committed = LogPosition(self->last_commit_position);
      out.epoch_number = EpochNumber(self->epoch_number);
      out.epoch_position = LogPosition(self->epoch_position);
    }
    return out;
  }
  std::string database_id() const override { return proof ? log_facts.database_id : std::string(); }
  node::ChunkInventory chunks() const override {
    if (!proof) {
      return {.problem = proof.error().message};
    }
    auto out = inventory;
    out.chunk_size = log_facts.chunk_size;
    out.problem = chunks_problem;
    return out;
  }
  node::IndexInventory index_tables() const override { return tables; }
  const Path& database_directory() const override { return options.place.database; }
  const Path& index_directory() const override { return index; }
  Result<std::vector<streams::ScavengePoint>> scavenge_points() const override {
    VERGER_RETURN_IF_ERROR(proof);
    if (!log_problem.empty()) {
      return Error{Errc::kUnavailable, log_problem};
    }
    auto points = log_facts.points;
    std::erase_if(points, [this](const streams::ScavengePoint& point) {
      return self && point.position.value() > self->last_commit_position;
    });
    return points;
  }
  LogPosition end_of_point(const streams::ScavengePoint& point) const override {
    const auto found = log_facts.point_ends.find(point.position.value());
    return proof && found != log_facts.point_ends.end() ? found->second : LogPosition(-1);
  }
  std::optional<api::UnfinishedScavenge> unfinished_scavenge() const override {
    return proof ? progress.unfinished : std::nullopt;
  }
  std::optional<api::ScavengePoint> last_finished_point() const override {
    return proof ? progress.finished : std::nullopt;
  }
  std::optional<api::RunningScavenge> running_scavenge() const override { return running; }
  [[nodiscard]] DatabaseReading reading(Log& log) const {
    return {env.files, options.place, env.clock, env.random, log};
  }
  Result<std::shared_ptr<node::DigestWork>> make_digest_job(
      std::int64_t point_number, const streams::DigestOptions& with) const override {
    VERGER_RETURN_IF_ERROR(proof);
    return std::make_shared<DigestOfFiles>(reading(env.log), point_number, with);
  }

  // --- Looking
  static net::awaitable<void> watch_routes(std::shared_ptr<Impl> self);
  static net::awaitable<void> watch_log(std::shared_ptr<Impl> self);
  static net::awaitable<void> watch_files(std::shared_ptr<Impl> self);
  static net::awaitable<Result<void>> look_at_files(std::shared_ptr<Impl> self);
  static net::awaitable<void> watch_certificates(std::shared_ptr<Impl> self);
  static net::awaitable<Result<void>> prove(std::shared_ptr<Impl> self);
  net::awaitable<Result<api::GossipMember>> ask_for_own_entry();
  net::awaitable<Result<void>> compare_directories();
  net::awaitable<void> look_at_routes();
  net::awaitable<void> look_at_scavenge();
  /// A scavenge goes through the chunks before the one that its point ended; 0: not known.
  std::int64_t chunks_of_scavenge() const {
    if (progress.unfinished && log_facts.chunk_size > 0) {
      return progress.unfinished->point.position / log_facts.chunk_size + 1;
    }
    return std::max<std::int64_t>(inventory.last_chunk, 0);
  }

  ExternalOptions options;
  ExternalEnvironment env;
  client::NodeClient client;
  Path index;
  bool stopping = false;
  bool asked = false;  ///< whether it answers has been seen

  std::optional<api::GossipMember> self;
  std::string version;
  std::string problem = "not looked at yet";
  std::string powerless;  ///< why it answers, but does not let the agent operate it
  /// That the directories are the node's; an error: why nothing of them is reported.
  Result<void> proof = Error{Errc::kUnavailable, "not proved yet"};
  Monotonic next_proof{};
  PositionWatch position_watch;
  std::optional<api::RunningScavenge> running;
  /// When the server is queried next whether a scavenge runs: each query is a line in its log.
  Monotonic next_current{};
  ScavengeCount count;
  node::ChunkInventory inventory;
  node::IndexInventory tables;
  std::string chunks_problem = "not read yet";
  ScavengeProgress progress;
  std::optional<ProgressStamp> progress_stamp;  ///< at which `progress` was read
  std::optional<ProgressStamp> newest_stamp;
  Error progress_problem{Errc::kIo, "not read yet"};  ///< empty message: none
  LogFacts log_facts;
  std::string log_of;  ///< instance of the process whose log `log_facts` are of
  Ticks log_as_of{};
  std::string log_problem = "not read yet";
  NodeCertificate certificate;

  http::TaskGroup tasks;
};

/// What the node says of itself, as of now.
net::awaitable<Result<api::GossipMember>> ExternalNode::Impl::ask_for_own_entry() {
  VERGER_CO_TRY(const auto gossip, client::to_result(co_await client.gossip()));
  VERGER_CO_TRY(auto own, client::to_result(client::own_entry(gossip, options.node)));
  if (gossip.members.size() == 1 && client.dialect().stale_single_gossip) {
    // A single node's gossip shows the positions of its last change of state.
    if (const auto stats = client::to_result(co_await client.stats());
        stats && stats->checksum > own.writer_checkpoint) {
      own.writer_checkpoint = stats->checksum;
      own.chaser_checkpoint = stats->checksum;
      own.last_commit_position = stats->checksum;
    }
  }
  co_return own;
}

net::awaitable<void> ExternalNode::Impl::look_at_routes() {
  auto own = co_await ask_for_own_entry();
  if (!own) {
    if (problem.empty()) {
      env.log.warning("the server does not answer",
                      {{"node", options.node.url()}, {"reason", own.error().message}});
    }
    problem = own.error().message;
    self.reset();
    powerless.clear();
    running.reset();
    co_return;
  }
  const bool is_new = !self || self->instance_id != own->instance_id;
  if (is_new) {
    // What was read from its files while another process had them is out of date.
    static_cast<void>(co_await look_at_files(shared_from_this()));
    env.log.info("the server answers", {{"node", options.node.url()},
                                        {"instance", own->instance_id},
                                        {"state", std::string(api::to_string(own->state))}});
    const auto info = client::to_result(co_await client.info());
    version = info ? info->version : own->es_version;
    if (const auto dialect = client::NodeDialect::of_text(version)) {
      client.set_dialect(*dialect);
    }
    position_watch.reset();
    next_current = Monotonic{};
  }
  if (is_new || (!proof && env.clock.monotonic() >= next_proof)) {
    static_cast<void>(co_await prove(shared_from_this()));
  }
  problem.clear();
  self = *std::move(own);
  co_await look_at_scavenge();
}

net::awaitable<Result<void>> ExternalNode::Impl::prove(std::shared_ptr<Impl> self) {
  auto found = co_await self->compare_directories();
  if (!found && (self->proof || self->proof.error().message != found.error().message)) {
    self->env.log.error("the agent's directories are not proved to be its node's",
                        {{"node", self->options.node.url()}, {"reason", found.error().message}});
  } else if (found && !self->proof) {
    self->env.log.info(
        "the agent's directories are its node's",
        {{"db", self->options.place.database.string()}, {"index", self->index.string()}});
  }
  self->proof = found;
  self->next_proof = self->env.clock.monotonic() + kUntilNextProof;
  co_return found;
}

net::awaitable<Result<void>> ExternalNode::Impl::compare_directories() {
  NodeDirectories reported;
  const auto settings = client::to_result(co_await client.settings());
  if (settings) {
    reported.database = settings->database;
    reported.index = settings->index;
  } else {
    reported.why_unknown = settings.error().message;
  }
  if (const auto stats = client::to_result(co_await client.stats())) {
    reported.process = stats->process_id;
  }
  const ConfiguredDirectories ours{.place = options.place,
                                   .server_database = options.server_database,
                                   .server_index = options.server_index};
  for (int attempt = 0;; ++attempt) {
    VERGER_CO_TRY(const auto before, co_await ask_for_own_entry());
    const auto look = std::make_shared<DirectoryLook>(env.files, ours, reported, env.prove);
    VERGER_CO_RETURN_IF_ERROR(co_await env.looks.run(look, std::make_shared<node::StopFlag>()));
    auto moves = position_watch.compare(options.place.database, before.writer_checkpoint,
                                        look->position().value(), env.clock.monotonic());
    // A node that is being started again may have cut its log in between.
    if (moves || attempt > 0) {
      co_return moves;
    }
  }
}

net::awaitable<void> ExternalNode::Impl::look_at_scavenge() {
  if (!running && powerless.empty() && env.clock.monotonic() < next_current) {
    co_return;
  }
  next_current = env.clock.monotonic() + kWhileIdle;
  const auto current = client::to_result(co_await client.current_scavenge());
  if (!current) {
    // Not seen is not stopped: what was seen last stays. Refusals of the user stay too, until he is
    // another; anything else may pass.
    const bool refused =
        current.error().code == Errc::kUnauthorized || current.error().code == Errc::kUnsupported;
    if (refused && powerless != current.error().message) {
      env.log.error("the server does not let the agent operate it",
                    {{"node", options.node.url()}, {"reason", current.error().message}});
    }
    powerless = refused ? current.error().message : std::string();
    co_return;
  }
  powerless.clear();
  if (current->id.empty()) {
    running.reset();
    co_return;
  }
  api::RunningScavenge now{.id = current->id};
  if (const auto statuses = client::to_result(co_await client.metrics())) {
    now.phase = statuses->scavenge;
  }
  co_await count.look(client, current->id);
  now.chunks_done = count.chunks_done();
  now.bytes_saved = count.bytes_saved();
  now.chunks_total = chunks_of_scavenge();
  running = std::move(now);
}

net::awaitable<void> ExternalNode::Impl::watch_routes(std::shared_ptr<Impl> self) {
  while (!self->stopping) {
    co_await self->look_at_routes();
    self->asked = true;
    co_await self->env.timers.sleep_for(self->options.poll_interval);
  }
}

net::awaitable<void> ExternalNode::Impl::watch_log(std::shared_ptr<Impl> self) {
  const auto stop = std::make_shared<node::StopFlag>();
  while (!self->stopping && !self->asked) {
    co_await self->env.timers.sleep_for(kFirstAnswer);  // whose log it is decides what is read
  }
  while (!self->stopping) {
    const auto began = self->env.clock.monotonic();
    // Another process may have cut the log before it answered.
    const auto process = self->self ? self->self->instance_id : std::string();
    const bool reads_on = self->log_problem.empty() && process == self->log_of;
    auto look = std::make_shared<LogLook>(self->reading(null_log()),
                                          reads_on ? std::optional(self->log_facts) : std::nullopt);
    const auto as_of = self->env.clock.now();
    const auto looked = co_await self->env.jobs.run(look, stop);
    if (looked) {
      self->log_facts = look->facts();
      self->log_problem.clear();
      self->log_of = process;
      self->log_as_of = as_of;
    } else {
      self->log_problem = looked.error().message;
    }
    look.reset();
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(self->env.clock.monotonic() - began);
    // What comes after a whole look is short.
    const auto rest = looked && !reads_on ? std::chrono::milliseconds(0) : rest_after_look(took);
    co_await self->env.timers.sleep_for(std::max({rest, kLeastRest, self->options.poll_interval}));
  }
}

net::awaitable<Result<void>> ExternalNode::Impl::look_at_files(std::shared_ptr<Impl> self) {
  const auto look = std::make_shared<FilesLook>(self->env.files, self->options.place,
                                                kProgressLimit, self->progress_stamp);
  VERGER_CO_RETURN_IF_ERROR(co_await self->env.looks.run(look, std::make_shared<node::StopFlag>()));
  if (look->chunks()) {
    self->inventory = *look->chunks();
  }
  self->tables = look->tables();
  self->chunks_problem = look->chunks() ? std::string() : look->chunks().error().message;
  if (look->progress_is_known()) {
    co_return look->chunks() ? Result<void>() : Result<void>(look->chunks().error());
  }
  if (look->stamp() && look->stamp() != self->newest_stamp) {
    // What is written there is written by a scavenge: query it at once.
    self->next_current = Monotonic{};
    self->newest_stamp = look->stamp();
  }
  self->progress_stamp =
      look->progress() && look->stamp() && look->stamp()->settled ? look->stamp() : std::nullopt;
  if (look->progress()) {
    self->progress = *look->progress();
  }
  self->progress_problem = look->progress() ? Error{Errc::kIo, {}} : look->progress().error();
  VERGER_CO_RETURN_IF_ERROR(look->chunks());
  VERGER_CO_RETURN_IF_ERROR(look->progress());
  co_return Result<void>();
}

net::awaitable<void> ExternalNode::Impl::watch_files(std::shared_ptr<Impl> self) {
  while (!self->stopping) {
    const auto began = self->env.clock.monotonic();
    static_cast<void>(co_await look_at_files(self));
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(self->env.clock.monotonic() - began);
    co_await self->env.timers.sleep_for(
        std::max(rest_after_look(took), self->options.poll_interval));
  }
}

net::awaitable<void> ExternalNode::Impl::watch_certificates(std::shared_ptr<Impl> self) {
  while (!self->stopping) {
    const bool seen = co_await self->certificate.look();
    co_await self->env.timers.sleep_for(seen ? kCertificateInterval : self->options.poll_interval);
  }
}

ExternalNode::ExternalNode(ExternalOptions options, ExternalEnvironment environment)
    : impl_(std::make_shared<Impl>(std::move(options), environment)) {}

ExternalNode::~ExternalNode() {
  impl_->stopping = true;
  impl_->tasks.cancel();
}

void ExternalNode::start() {
  impl_->tasks.spawn(Impl::watch_routes(impl_));
  impl_->tasks.spawn(Impl::watch_log(impl_));
  impl_->tasks.spawn(Impl::watch_files(impl_));
  if (impl_->options.node.tls) {
    impl_->tasks.spawn(Impl::watch_certificates(impl_));
  }
}

node::NodeInspection* ExternalNode::inspection() { return impl_->self ? impl_.get() : nullptr; }

void ExternalNode::complete(api::AgentFacts& facts) const {
  const auto& impl = *impl_;
  if (!impl.version.empty()) {
    facts.node_version = impl.version;
  }
  json more{{"external", true}};
  if (const auto& why = impl.self ? impl.powerless : impl.problem; !why.empty()) {
    facts.node_problem = why;
  }
  facts.database_directory = {.path = impl.options.place.database.string(),
                              .identity = directory_identity(impl.options.place.database)};
  facts.index_directory = {.path = impl.index.string(), .identity = directory_identity(impl.index)};
  if (impl.log_problem.empty()) {
    facts.log_as_of = format_ticks(impl.log_as_of);
  }
  std::vector<std::string> problems{impl.log_problem, impl.chunks_problem};
  // A large state database cannot be read while a scavenge writes to it: that is not damage.
  if (impl.progress_problem.code == Errc::kUnavailable) {
    more["scavengeStateProblem"] = impl.progress_problem.message;
  } else {
    problems.push_back(impl.progress_problem.message);
  }
  std::erase(problems, std::string());
  const auto repeated = std::ranges::unique(problems);
  problems.erase(repeated.begin(), repeated.end());
  if (impl.self && !impl.proof) {
    facts.files_problem = impl.proof.error().message;
  } else if (!problems.empty()) {
    facts.files_problem = fmt::format("{}", fmt::join(problems, "; "));
  }
  more["certificates"] = impl.certificate.facts(facts.warning);
  facts.more_json = api::to_text(more);
  if (impl.self) {
    return;
  }
  // A stopped server leaves its files.
  facts.database_bytes = impl.inventory.total_bytes;
  facts.chunk_file_count = impl.inventory.file_count;
  facts.largest_chunk_bytes = impl.inventory.largest_bytes;
  facts.database_id = impl.log_facts.database_id;
}

std::string ExternalNode::version() const { return impl_->self ? impl_->version : std::string(); }

net::awaitable<Result<std::string>> ExternalNode::served_serial() const {
  const auto impl = impl_;
  co_return co_await impl->certificate.served_serial();
}

Result<std::string> ExternalNode::serial_on_disk() const {
  return impl_->certificate.serial_on_disk();
}

}  // namespace verger::external
