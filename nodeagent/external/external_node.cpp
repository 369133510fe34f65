#include "nodeagent/external/external_node.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/client/judge.h"
#include "nodeagent/http/task_group.h"

namespace verger::external {
namespace {

using nlohmann::json;

/// scavenging.db is read whole, and the agent answers nothing meanwhile.
constexpr std::uint64_t kProgressLimit = 64ULL * 1024 * 1024;
/// Reading the log's facts may take long on a large index: then it is done less often.
constexpr int kRestPerLook = 20;
constexpr std::chrono::milliseconds kLeastRest{1000};
constexpr std::int32_t kLogEntries = 200;
constexpr std::chrono::milliseconds kCertificateInterval{10'000};

json to_json(const http::CertificateInfo& certificate) {
  return {{"subject", certificate.subject},   {"issuer", certificate.issuer},
          {"serial", certificate.serial},     {"fingerprint", certificate.fingerprint},
          {"names", certificate.names},       {"notBefore", certificate.not_before},
          {"notAfter", certificate.not_after}};
}

}  // namespace

class ExternalNode::Impl final : public node::NodeInspection {
 public:
  Impl(ExternalOptions with, ExternalEnvironment from)
      : options(std::move(with)),
        env(from),
        client(env.client, options.node,
               options.credentials.user.empty() ? std::nullopt : std::optional(options.credentials),
               {}, options.request_deadline),
        index(options.place.index_directory()),
        tasks(env.executor, env.log, "external node") {}

  // --- NodeInspection
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
  std::string database_id() const override { return log_facts.database_id; }
  node::ChunkInventory chunks() const override {
    auto listed = list_chunks(env.files, options.place.database);
    auto out = listed ? *listed : node::ChunkInventory{};
    out.chunk_size = log_facts.chunk_size;
    return out;
  }
  const Path& database_directory() const override { return options.place.database; }
  const Path& index_directory() const override { return index; }
  Result<std::vector<streams::ScavengePoint>> scavenge_points() const override {
    if (!log_problem.empty()) {
      return Error{Errc::kUnavailable, log_problem};
    }
    auto points = log_facts.points;
    std::erase_if(points, [this](const streams::ScavengePoint& point) {
      return self && point.position.value() > self->last_commit_position;
    });
    return points;
  }
  std::optional<api::UnfinishedScavenge> unfinished_scavenge() const override {
    return progress().unfinished;
  }
  std::optional<api::ScavengePoint> last_finished_point() const override {
    return progress().finished;
  }
  std::optional<api::RunningScavenge> running_scavenge() const override { return running; }
  Result<std::shared_ptr<streams::DigestJob>> make_digest_job(
      std::int64_t point_number) const override {
    struct Held {
      std::unique_ptr<streams::Database> database;
      std::optional<streams::DigestJob> job;
    };
    const auto held = std::make_shared<Held>();
    VERGER_TRY(held->database,
               open_for_reading(env.files, options.place, env.clock, env.random, env.log));
    VERGER_TRY(const auto points, streams::scavenge_points(*held->database));
    for (const auto& point : points) {
      if (point.number.value() == point_number) {
        held->job.emplace(*held->database, point.position, point.effective_now);
        return std::shared_ptr<streams::DigestJob>(held, &*held->job);
      }
    }
    return Error{Errc::kNotFound, fmt::format("scavenge point {} is not in the log of {}",
                                              point_number, options.node.url())};
  }

  ScavengeProgress progress() const {
    auto read = read_scavenge_progress(env.files, index, kProgressLimit);
    if (read) {
      last_progress = *std::move(read);
    }
    return last_progress;
  }

  // --- Looking
  static net::awaitable<void> watch_routes(std::shared_ptr<Impl> self);
  static net::awaitable<void> watch_log(std::shared_ptr<Impl> self);
  static net::awaitable<void> watch_certificates(std::shared_ptr<Impl> self);
  net::awaitable<void> look_at_routes();
  net::awaitable<void> look_at_scavenge();

  ExternalOptions options;
  ExternalEnvironment env;
  client::NodeClient client;
  Path index;
  bool stopping = false;

  std::optional<api::GossipMember> self;
  std::string version;
  std::string problem = "not asked yet";
  std::optional<api::RunningScavenge> running;
  mutable ScavengeProgress last_progress;
  LogFacts log_facts;
  std::string log_problem = "not read yet";
  std::optional<http::CertificateInfo> served;
  std::string served_problem;

  http::TaskGroup tasks;
};

net::awaitable<void> ExternalNode::Impl::look_at_routes() {
  auto gossip = client::to_result(co_await client.gossip());
  auto own = gossip ? client::to_result(client::own_entry(*gossip, options.node))
                    : Result<api::GossipMember>(gossip.error());
  if (!own) {
    if (problem.empty()) {
      env.log.warning("the server does not answer",
                      {{"node", options.node.url()}, {"reason", own.error().message}});
    }
    problem = own.error().message;
    self.reset();
    running.reset();
    co_return;
  }
  if (!self || self->instance_id != own->instance_id) {
    env.log.info("the server answers", {{"node", options.node.url()},
                                        {"instance", own->instance_id},
                                        {"state", std::string(api::to_string(own->state))}});
    const auto info = client::to_result(co_await client.info());
    version = info ? info->version : own->es_version;
    if (const auto dialect = client::NodeDialect::of_text(version)) {
      client.set_dialect(*dialect);
    }
  }
  problem.clear();
  self = *std::move(own);
  if (gossip->members.size() == 1 && client.dialect().stale_single_gossip) {
    // A single node's gossip shows the positions of its last change of state.
    if (const auto stats = client::to_result(co_await client.stats());
        stats && stats->checksum > self->writer_checkpoint) {
      self->writer_checkpoint = stats->checksum;
      self->chaser_checkpoint = stats->checksum;
      self->last_commit_position = stats->checksum;
    }
  }
  co_await look_at_scavenge();
}

net::awaitable<void> ExternalNode::Impl::look_at_scavenge() {
  const auto current = client::to_result(co_await client.current_scavenge());
  if (!current || current->id.empty()) {
    running.reset();
    co_return;
  }
  api::RunningScavenge now{.id = current->id};
  if (const auto statuses = client::to_result(co_await client.metrics())) {
    now.phase = statuses->scavenge;
  }
  if (const auto log = client::to_result(co_await client.scavenge_log(current->id, kLogEntries))) {
    for (const auto& event : *log) {
      if (event.type == "$scavengeChunksCompleted") {
        now.chunks_done += event.chunk_end - event.chunk_start + 1;
        now.bytes_saved += event.space_saved;
      }
    }
  }
  running = std::move(now);
}

net::awaitable<void> ExternalNode::Impl::watch_routes(std::shared_ptr<Impl> self) {
  while (!self->stopping) {
    co_await self->look_at_routes();
    co_await self->env.timers.sleep_for(self->options.poll_interval);
  }
}

net::awaitable<void> ExternalNode::Impl::watch_log(std::shared_ptr<Impl> self) {
  const auto stop = std::make_shared<node::StopFlag>();
  while (!self->stopping) {
    const auto began = self->env.clock.monotonic();
    auto look = std::make_shared<LogLook>(self->env.files, self->options.place, self->env.clock,
                                          self->env.random, null_log());
    const auto looked = co_await self->env.jobs.run(look, stop);
    if (looked) {
      self->log_facts = look->facts();
      self->log_problem.clear();
    } else {
      self->log_problem = looked.error().message;
    }
    look.reset();
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(self->env.clock.monotonic() - began);
    co_await self->env.timers.sleep_for(
        std::max({kRestPerLook * took, kLeastRest, self->options.poll_interval}));
  }
}

net::awaitable<void> ExternalNode::Impl::watch_certificates(std::shared_ptr<Impl> self) {
  while (!self->stopping) {
    auto seen = co_await http::served_certificate(self->env.executor, self->options.node,
                                                  self->options.request_deadline);
    if (seen) {
      self->served = *std::move(seen);
      self->served_problem.clear();
    } else {
      self->served.reset();
      self->served_problem = seen.error().message;
    }
    co_await self->env.timers.sleep_for(self->served ? kCertificateInterval
                                                     : self->options.poll_interval);
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
  if (impl_->options.node.tls) {
    impl_->tasks.spawn(Impl::watch_certificates(impl_));
  }
}

node::NodeInspection* ExternalNode::inspection() { return impl_->self ? impl_.get() : nullptr; }

void ExternalNode::complete(json& facts) const {
  const auto& impl = *impl_;
  if (!impl.version.empty()) {
    facts["nodeVersion"] = impl.version;
  }
  facts["external"] = true;
  if (!impl.problem.empty()) {
    facts["nodeProblem"] = impl.problem;
  }
  if (!impl.log_problem.empty()) {
    facts["filesProblem"] = impl.log_problem;
  }
  auto certificates = json::object();
  if (!impl.options.certificate_file.empty()) {
    if (const auto read = http::read_certificates(impl.options.certificate_file)) {
      certificates["onDisk"] = to_json(read->front());
    } else {
      certificates["onDiskProblem"] = read.error().message;
    }
  }
  if (impl.served) {
    certificates["served"] = to_json(*impl.served);
  } else if (!impl.served_problem.empty()) {
    certificates["servedProblem"] = impl.served_problem;
  }
  facts["certificates"] = std::move(certificates);
  if (impl.self) {
    return;
  }
  // A stopped server leaves its files.
  if (const auto chunks = list_chunks(impl.env.files, impl.options.place.database)) {
    facts["databaseBytes"] = chunks->total_bytes;
    facts["chunkFileCount"] = chunks->file_count;
    facts["largestChunkBytes"] = chunks->largest_bytes;
  }
  facts["databaseId"] = impl.log_facts.database_id;
}

net::awaitable<Result<std::string>> ExternalNode::served_serial() const {
  const auto impl = impl_;
  if (!impl->options.node.tls) {
    co_return Error{Errc::kUnsupported, fmt::format("{}: without TLS there is no certificate",
                                                    impl->options.node.url())};
  }
  VERGER_CO_TRY(const auto seen,
                co_await http::served_certificate(impl->env.executor, impl->options.node,
                                                  impl->options.request_deadline));
  co_return seen.serial;
}

Result<std::string> ExternalNode::serial_on_disk() const {
  if (impl_->options.certificate_file.empty()) {
    return Error{Errc::kUnsupported,
                 "the agent was not told where the node's certificate is (--certificate-file)"};
  }
  VERGER_TRY(const auto read, http::read_certificates(impl_->options.certificate_file));
  return read.front().serial;
}

}  // namespace verger::external
