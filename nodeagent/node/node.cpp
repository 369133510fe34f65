#include "nodeagent/node/node.h"

#include <algorithm>
#include <limits>

#include "engine/streams/find_scavenge_point.h"
#include "nodeagent/http/compress.h"
#include "nodeagent/node/authentication.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/detail/leadership.h"
#include "nodeagent/node/detail/lenient_words.h"
#include "nodeagent/node/detail/replication_leader.h"
#include "nodeagent/node/node_api.h"
#include "nodeagent/node/scavenger.h"

namespace verger::node {
namespace {

/// Counts the requests being answered, so that a stop can wait for them.
struct InFlight {
  std::shared_ptr<Core> core;
  explicit InFlight(std::shared_ptr<Core> node) : core(std::move(node)) { ++core->requests; }
  ~InFlight() { --core->requests; }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
};

/// As the server does: only where one of these words is all that a header requests.
std::optional<std::pair<std::string, http::ContentEncoding>> encoding_for(
    const http::Request& request) {
  for (const auto& [name, value] : request.headers.all()) {
    if (same_word(name, "Accept-Encoding") && value == "gzip") {
      return std::pair(value, http::ContentEncoding::kGzip);
    }
    if (same_word(name, "Accept-Encoding") && value == "deflate") {
      return std::pair(value, http::ContentEncoding::kDeflate);
    }
  }
  return std::nullopt;
}

net::awaitable<http::Response> answer(std::weak_ptr<Core> weak,
                                      std::shared_ptr<http::Router> router, http::Request request) {
  const auto core = weak.lock();
  if (!core || core->stopped()) {
    co_return http::Response{.status = 503, .reason = "Server Is Not Ready"};
  }
  const InFlight in_flight(core);
  // A client with wrong credentials gets nothing, but a sign of life.
  const auto path = std::string_view(request.target).substr(0, request.target.find('?'));
  if (path != "/health/live") {
    if (auto identity = core->authenticator->identify(request); !identity) {
      co_return std::move(identity).error();
    }
  }
  const auto encoding = encoding_for(request);
  auto response = co_await router->answer(std::move(request));
  // What no route has answered is sent as it is.
  if (encoding && response.headers.get("Access-Control-Allow-Methods")) {
    response.headers.set("Content-Encoding", encoding->first);
    response.body = http::compressed(response.body, encoding->second);
  }
  co_return response;
}

net::awaitable<void> serve_link(std::weak_ptr<Core> weak,
                                std::shared_ptr<http::FrameConnection> connection) {
  auto core = weak.lock();
  if (!core || !core->takes_work()) {
    connection->close();
    co_return;
  }
  co_await serve_follower(core->keep(*core->leadership), core->keep(*core->gossip),
                          std::move(connection));
}

Result<void> check(const NodeOptions& options) {
  const auto refuse = [](std::string text) {
    return Error{Errc::kInvalidArgument, "node options: " + text};
  };
  if (options.database.empty()) {
    return refuse("no database directory");
  }
  if (options.cluster_size < 1) {
    return refuse("the cluster size counts voters, so it is at least 1");
  }
  if (!options.index.empty() && options.index == options.database) {
    return refuse("database and index need different directories");
  }
  if (options.read_only_replica && options.cluster_size == 1) {
    return refuse("a read-only replica needs a cluster size above 1");
  }
  if (options.cluster_size == 1 && !options.gossip_seeds.empty()) {
    return refuse("gossip seeds need a cluster size above 1");
  }
  if (options.cluster_size > 1 && options.gossip_seeds.empty()) {
    return refuse("a cluster needs gossip seeds: the HTTP endpoints of the other nodes");
  }
  return {};
}

}  // namespace

NodeTimings NodeTimings::fast() {
  NodeTimings timings;
  timings.tick = ms(5);
  timings.gossip_interval = ms(50);
  timings.gossip_timeout = ms(200);
  timings.discover_leader = ms(60);
  timings.election_timeout = ms(80);
  timings.heartbeat_interval = ms(40);
  timings.heartbeat_timeout = ms(160);
  timings.quorum_loss_wait = ms(200);
  timings.reconnect_delay = ms(20);
  timings.write_timeout = ms(1000);
  timings.scavenge_point_first_look = ms(20);
  timings.scavenge_point_retry = ms(50);
  timings.shutdown_grace = ms(500);
  return timings;
}

namespace {

class DigestOfOpenLog final : public DigestWork {
 public:
  DigestOfOpenLog(const streams::Database& database, LogPosition end, Ticks effective_now,
                  const streams::DigestOptions& options)
      : job_(database, end, effective_now, options) {}
  Result<StepOutcome> step(Budget budget) override { return job_.step(budget); }
  [[nodiscard]] const streams::DatabaseDigest& digest() const override { return job_.digest(); }
  [[nodiscard]] LogPosition position() const override { return job_.position(); }
  [[nodiscard]] LogPosition end() const override { return job_.end(); }

 private:
  streams::DigestJob job_;
};

}  // namespace

class Node::Impl final : public NodeInspection {
 public:
  Impl(NodeOptions options, NodeEnvironment environment, std::unique_ptr<streams::Database> db)
      : core(std::make_shared<Core>(std::move(options), std::move(environment), std::move(db))),
        router(make_router(core)) {}

  std::string instance_id() const override { return core->instance.to_string(); }
  api::NodeState state() const override { return core->election->state(); }
  NodePositions positions() const override {
    NodePositions positions;
    positions.writer = core->log().end();
    positions.chaser = positions.writer;
    positions.committed = core->db().committed();
    if (const auto last = core->log().epochs().last()) {
      positions.epoch_number = last->number;
      positions.epoch_position = last->position;
    }
    return positions;
  }
  std::string database_id() const override {
    const auto& epochs = core->log().epochs().all();
    if (!epochs.empty() && epochs.front().previous.value() < 0) {
      return epochs.front().id.to_string();
    }
    // Of a long history only the newest part is at hand; the first epoch begins the log.
    Bytes buffer;
    const auto record = core->log().read(LogPosition(0), buffer);
    const auto* system = record ? std::get_if<log::SystemRecord>(&record->record) : nullptr;
    const auto epoch = system != nullptr ? log::decode_epoch_json(system->json)
                                         : Result<log::Epoch>(Error{Errc::kNotFound, {}});
    return epoch ? epoch->id.to_string() : std::string();
  }
  ChunkInventory chunks() const override {
    ChunkInventory inventory;
    inventory.chunk_size = core->log().chunk_size();
    for (const auto& chunk : core->log().chunks()) {
      const auto size = static_cast<std::int64_t>(chunk->file_size());
      ++inventory.file_count;
      inventory.total_bytes += size;
      inventory.largest_bytes = std::max(inventory.largest_bytes, size);
      inventory.files.push_back({.start = chunk->start().value(), .bytes = size});
    }
    inventory.last_chunk = core->log().chunk_of(core->log().end()).value();
    return inventory;
  }
  IndexInventory index_tables() const override {
    std::vector<IndexTable> tables;
    for (const auto& slot : core->db().stream_index().tables()) {
      tables.push_back(
          {.level = slot.level, .bytes = static_cast<std::int64_t>(slot.table->file_size())});
    }
    return inventory_of(tables, std::numeric_limits<int>::max());
  }
  std::int64_t event_count() const override {
    const auto& index = core->db().stream_index();
    auto count = index.memory_entry_count();
    for (const auto& slot : index.tables()) {
      count += slot.table->count();
    }
    return static_cast<std::int64_t>(count);
  }
  const Path& database_directory() const override { return core->log().directory(); }
  const Path& index_directory() const override { return core->db().stream_index().directory(); }
  Result<std::vector<streams::ScavengePoint>> scavenge_points() const override {
    return streams::scavenge_points(core->db());
  }
  LogPosition end_of_point(const streams::ScavengePoint& point) const override {
    Bytes buffer;
    const auto record = core->log().read(point.position, buffer);
    return record ? record->next : LogPosition(-1);
  }
  std::optional<api::UnfinishedScavenge> unfinished_scavenge() const override {
    return core->scavenger ? core->scavenger->unfinished() : std::nullopt;
  }
  std::optional<api::ScavengePoint> last_finished_point() const override {
    return core->scavenger ? core->scavenger->last_finished() : std::nullopt;
  }
  std::optional<api::RunningScavenge> running_scavenge() const override {
    return core->scavenger ? core->scavenger->running() : std::nullopt;
  }
  Result<std::shared_ptr<DigestWork>> make_digest_job(
      std::int64_t point_number, const streams::DigestOptions& options) const override {
    VERGER_TRY(const auto points, streams::scavenge_points(core->db()));
    const auto point = streams::find_scavenge_point(points, point_number);
    if (!point) {
      return point.error().within(fmt::format("{}", core->self));
    }
    return std::make_shared<DigestOfOpenLog>(core->db(), point->position, point->effective_now,
                                             options);
  }

  std::shared_ptr<Core> core;
  std::shared_ptr<http::Router> router;
};

Result<std::unique_ptr<Node>> Node::open(NodeOptions options, NodeEnvironment environment) {
  VERGER_RETURN_IF_ERROR(check(options));
  streams::DatabaseOptions database;
  database.log.access = log::Access::kWrite;
  database.log.chunk_size = options.chunk_size;
  database.log.max_truncation = options.max_truncation;
  database.log.assume_stopped = options.assume_stopped;
  database.log.create = true;
  database.index.read_only = false;
  database.index.max_mem_table_size = options.max_mem_table_size;
  database.index.cache_depth = options.index_cache_depth;
  database.index.stream_existence_filter_size = options.stream_existence_filter_size;
  database.index_directory = options.index;
  const bool alone = options.cluster_size == 1;
  VERGER_TRY(auto opened,
             streams::Database::open(environment.files, options.database, database, alone,
                                     environment.clock, environment.random, environment.log));
  return std::unique_ptr<Node>(new Node(
      std::make_shared<Impl>(std::move(options), std::move(environment), std::move(opened))));
}

Node::Node(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Node::~Node() { impl_->core->abandon(); }

http::Handler Node::http_handler() {
  return [weak = std::weak_ptr<Core>(impl_->core), router = impl_->router](http::Request request) {
    return answer(weak, router, std::move(request));
  };
}

http::FrameHandler Node::frame_handler() {
  return
      [weak = std::weak_ptr<Core>(impl_->core)](std::shared_ptr<http::FrameConnection> connection) {
        return serve_link(weak, std::move(connection));
      };
}

void Node::start(NodeAddresses addresses) { impl_->core->start(std::move(addresses)); }

NodeInspection& Node::inspection() { return *impl_; }

std::shared_ptr<Core> Node::core() const { return impl_->core; }

net::awaitable<void> Node::stop() {
  const auto core = impl_->core;
  if (core->stopped()) {
    co_return;
  }
  const auto deadline = core->now() + core->options.timings.shutdown_grace;
  core->begin_stop();
  if (core->serving()) {
    core->scavenger->request_stop();
    // What was accepted gets its majority, and a stopped scavenge its last entry, if they can.
    while (core->now() < deadline &&
           (core->leadership->writes_in_flight() || !core->scavenger->current().empty())) {
      co_await core->env.timers.sleep_for(core->options.timings.tick);
    }
    core->election->shut_down();
  }
  core->abandon();
  while (core->requests > 0 && core->now() < deadline) {
    co_await core->env.timers.sleep_for(core->options.timings.tick);
  }
  if (!core->failed()) {
    if (const auto saved = core->log().flush_checkpoints(); !saved) {
      core->env.log.warning("checkpoints not saved", {{"reason", saved.error().message}});
    }
  }
  core->env.log.info("node stopped", {{"node", core->self}});
}

}  // namespace verger::node
