#include "tests/support/nodes/node_cluster.h"

#include <cstdio>
#include <cstdlib>

namespace verger::testing {
namespace {

std::string name_of(std::size_t i) { return "n" + std::to_string(i + 1); }

net::awaitable<void> exchange(SimHost& from, http::Endpoint to, http::Request request,
                              std::chrono::milliseconds deadline,
                              std::shared_ptr<std::optional<Result<http::Response>>> answer) {
  answer->emplace(co_await from.client().send(std::move(to), std::move(request), deadline));
}

}  // namespace

SimLog::SimLog(SimWorld& world, std::string name)
    : world_(world), name_(std::move(name)), on_(std::getenv("VERGER_TEST_LOG") != nullptr) {}

void SimLog::write(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  if (!on_) {
    return;
  }
  std::string line(message);
  for (const auto& field : fields) {
    line += fmt::format(" {}={}", field.name, field.value);
  }
  std::fprintf(stderr, "%10.3f ms %s %d %s\n", static_cast<double>(world_.now().count()) / 1e6,
               name_.c_str(), static_cast<int>(level), line.c_str());
}

NodeClusterOptions::NodeClusterOptions() {
  node.timings = node::NodeTimings::fast();
  node.chunk_size = 64 * 1024;
  node.max_mem_table_size = 1000;
  node.index_cache_depth = 8;
  node.stream_existence_filter_size = 10'000;
  node.enable_atom_pub = true;
  node.assume_stopped = true;
}

NodeCluster::NodeCluster(SimWorld& w, NodeClusterOptions options)
    : world(w), tls_(options.tls), job_budget_(options.job_budget), job_pace_(options.job_pace) {
  const auto count = options.voters + options.replicas;
  for (std::size_t i = 0; i < count; ++i) {
    endpoints_.push_back({options.tls, name_of(i), kHttpPort});
    world.add_host(name_of(i));
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto& slot = slots_.emplace_back();
    slot.options = options.node;
    slot.options.database = "/data";
    slot.options.cluster_size = static_cast<int>(options.voters);
    slot.options.read_only_replica = i >= options.voters;
    slot.options.gossip_seeds.clear();
    for (std::size_t other = 0; count > 1 && other < count; ++other) {
      if (other != i) {
        slot.options.gossip_seeds.push_back(endpoints_[other]);
      }
    }
    slot.log = std::make_unique<SimLog>(world, name_of(i));
  }
  world.add_host("client").boot();
}

NodeCluster::~NodeCluster() {
  for (std::size_t i = 0; i < size(); ++i) {
    if (host(i).up()) {
      host(i).crash(false);
    }
  }
}

Result<void> NodeCluster::boot(std::size_t i) {
  auto& slot = slots_[i];
  auto& machine = host(i);
  machine.boot();
  slot.failed = false;
  slot.disk = std::make_unique<SlowFileSystem>(machine.disk(), [this, i] { before_sync(i); });
  slot.random = std::make_unique<SeededRandom>(world.random().next());
  slot.jobs = std::make_unique<node::InlineJobRunner>(machine.timers(), job_budget_, job_pace_);
  node::NodeEnvironment environment{.executor = machine.executor(),
                                    .files = *slot.disk,
                                    .clock = machine.clock(),
                                    .random = *slot.random,
                                    .timers = machine.timers(),
                                    .client = machine.client(),
                                    .frames = machine.frames(),
                                    .jobs = *slot.jobs,
                                    .log = *slot.log,
                                    // Later, so that other work comes between, as in production.
                                    .disk = machine.executor()};
  // As the program does: it ends by itself, with status 0.
  environment.on_shutdown = [this, i] {
    world.schedule(std::chrono::milliseconds(1), [this, i] {
      if (host(i).up()) {
        ++slots_[i].ended;
        crash(i, false);
      }
    });
  };
  environment.on_failure = [&slot](const Error&) { slot.failed = true; };
  auto opened = node::Node::open(slot.options, std::move(environment));
  if (!opened) {
    machine.crash(false);
    return opened.error();
  }
  const std::shared_ptr<node::Node> node = *std::move(opened);
  slot.node = node;
  machine.keep(node);
  machine.serve_http(kHttpPort, node->http_handler());
  machine.serve_frames(kReplicationPort, node->frame_handler());
  node->start({endpoints_[i], {tls_, name_of(i), kReplicationPort}});
  return {};
}

void NodeCluster::boot_all() {
  for (std::size_t i = 0; i < size(); ++i) {
    if (const auto booted = boot(i); !booted) {
      std::fprintf(stderr, "%s: %s\n", name_of(i).c_str(), booted.error().message.c_str());
      std::abort();
    }
  }
}

void NodeCluster::crash(std::size_t i, bool power) { host(i).crash(power); }

void NodeCluster::slow_disk(std::size_t i, std::chrono::milliseconds longest_sync) {
  slots_[i].longest_sync = longest_sync;
}

void NodeCluster::before_sync(std::size_t i) {
  const auto longest = static_cast<std::uint64_t>(slots_[i].longest_sync.count());
  if (longest > 0 && !host(i).dying()) {
    ++slow_syncs_;
    host(i).stay_busy(std::chrono::milliseconds(1 + world.random().below(longest)));
  }
}

SimHost& NodeCluster::host(std::size_t i) { return world.host(name_of(i)); }

node::Node* NodeCluster::node(std::size_t i) {
  const auto node = slots_[i].node.lock();
  return node && host(i).up() && !slots_[i].failed ? node.get() : nullptr;
}

std::optional<std::size_t> NodeCluster::leader() {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < size(); ++i) {
    auto* member = node(i);
    if (member == nullptr || member->inspection().state() != api::NodeState::kLeader) {
      continue;
    }
    if (found && node(*found)->inspection().positions().epoch_number >=
                     member->inspection().positions().epoch_number) {
      continue;
    }
    found = i;
  }
  return found;
}

bool NodeCluster::settled() {
  int leaders = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    auto* member = node(i);
    if (member == nullptr) {
      continue;
    }
    const auto state = member->inspection().state();
    leaders += state == api::NodeState::kLeader ? 1 : 0;
    if (state != api::NodeState::kLeader && state != api::NodeState::kFollower &&
        state != api::NodeState::kReadOnlyReplica) {
      return false;
    }
  }
  return leaders == 1;
}

bool NodeCluster::run_until_settled(std::chrono::milliseconds limit) {
  return world.run_until([&] { return settled(); }, limit);
}

bool NodeCluster::level() {
  std::optional<node::NodePositions> first;
  for (std::size_t i = 0; i < size(); ++i) {
    if (auto* member = node(i)) {
      const auto positions = member->inspection().positions();
      if (positions.committed != positions.writer) {
        return false;
      }
      if (!first) {
        first = positions;
      }
      if (positions.writer != first->writer || positions.epoch_number != first->epoch_number) {
        return false;
      }
    }
  }
  return first.has_value();
}

bool NodeCluster::run_until_level(std::chrono::milliseconds limit) {
  return world.run_until([&] { return settled() && level(); }, limit);
}

Result<http::Response> NodeCluster::request(std::size_t i, http::Request request,
                                            std::chrono::milliseconds deadline) {
  auto answer = std::make_shared<std::optional<Result<http::Response>>>();
  auto& client = world.host("client");
  client.spawn(exchange(client, endpoints_[i], std::move(request), deadline, answer));
  world.run_until([&] { return answer->has_value(); }, deadline + std::chrono::seconds(1));
  if (!answer->has_value()) {
    return Error{Errc::kUnknownOutcome, "no answer, not even a deadline"};
  }
  return **answer;
}

Result<http::Response> NodeCluster::get(std::size_t i, const std::string& target) {
  http::Request wanted;
  wanted.target = target;
  wanted.headers.set("Accept", "application/json");
  return request(i, std::move(wanted));
}

Result<http::Response> NodeCluster::post(std::size_t i, const std::string& target,
                                         const std::string& body) {
  http::Request wanted;
  wanted.method = "POST";
  wanted.target = target;
  wanted.headers.set("Accept", "application/json");
  wanted.body = body;
  return request(i, std::move(wanted));
}

int NodeCluster::append(std::size_t i, const std::string& stream, const std::string& data) {
  http::Request wanted;
  wanted.method = "POST";
  wanted.target = "/streams/" + http::percent_encode(stream);
  wanted.headers.set("Content-Type", "application/json");
  wanted.headers.set("ES-EventType", "noted");
  wanted.headers.set("ES-EventId", world.random().uuid().to_string());
  wanted.body = data;
  const auto answer = request(i, std::move(wanted));
  return answer ? answer->status : 0;
}

bool NodeCluster::fill_with_limited_streams(int streams, int events) {
  const auto data = "\"" + std::string(3000, 'x') + "\"";
  for (int s = 0; s < streams; ++s) {
    const auto stream = "s" + std::to_string(s);
    http::Request metadata;
    metadata.method = "POST";
    metadata.target = "/streams/" + stream + "/metadata";
    metadata.headers.set("Content-Type", "application/json");
    metadata.headers.set("ES-EventId", world.random().uuid().to_string());
    metadata.body = R"({"$maxCount":2})";
    const auto set = request(*leader(), metadata);
    if (!set || set->status != 201) {
      return false;
    }
    for (int e = 0; e < events; ++e) {
      if (append(*leader(), stream, data) != 201) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace verger::testing
