#include "controller/cluster/observer.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include <boost/asio/experimental/awaitable_operators.hpp>

#include "controller/cluster/detail/certificate_looks.h"
#include "controller/cluster/detail/compare.h"
#include "controller/cluster/detail/observed_facts.h"
#include "controller/cluster/gather.h"
#include "controller/cluster/identity.h"
#include "controller/cluster/observation_cache.h"
#include "controller/cluster/peers.h"
#include "nodeagent/client/judge.h"

namespace verger::controller {
namespace {

using detail::Raw;
using planner::ClusterSnapshot;

/// How far a clock was behind or ahead, read between two looks at ours; nullopt where it
/// gave no time. `grain`: the answer may be older by as much.
std::optional<planner::ClockSkew> skew_of(std::string_view reported, Ticks before, Ticks after,
                                          std::chrono::milliseconds grain) {
  const auto theirs = parse_ticks(std::string(reported));
  if (!theirs) {
    return std::nullopt;
  }
  const auto middle = before.value() + (after.value() - before.value()) / 2;
  return planner::ClockSkew{
      .ahead_ms = (theirs->value() - middle) / kTicksPerMillisecond,
      .error_ms = (after.value() - before.value()) / 2 / kTicksPerMillisecond + grain.count()};
}

/// A node stamps its own entry each time it gossips.
constexpr std::chrono::seconds kGossipGrain{5};

/// A single node of some versions shows the entry of its last change of state for ever.
bool is_refreshed(const api::Gossip& gossip, std::string_view version) {
  const auto dialect = client::NodeDialect::of_text(version);
  return gossip.members.size() > 1 || (dialect && !dialect->stale_single_gossip);
}

void take_gossip(Raw& raw, api::Gossip gossip, Ticks before) {
  auto& node = raw.node;
  const auto asked = http::parse_endpoint(node.url);
  const auto* self = client::answering_member(gossip, asked ? *asked : http::Endpoint{});
  if (self == nullptr) {
    node.problem = fmt::format(
        "which of the {} members in its gossip it is cannot be decided: it calls itself {}:{}; "
        "register it by the address that it advertises",
        gossip.members.size(), gossip.server_ip, gossip.server_port);
    return;
  }
  node.answered = true;
  node.instance_id = self->instance_id;
  node.endpoint = fmt::format("{}:{}", gossip.server_ip, gossip.server_port);
  node.version = self->es_version;
  node.state = std::string(api::to_string(self->state));
  node.role = detail::role_of(self->state);
  // A node that answers is alive, but one that is shutting down says so only in its own gossip.
  node.alive = self->is_alive && self->state != api::NodeState::kShuttingDown &&
               self->state != api::NodeState::kShutdown;
  node.read_only_replica = self->is_read_only_replica;
  node.priority = self->node_priority;
  node.epoch_number = self->epoch_number;
  node.epoch_id = self->epoch_id;
  node.writer_checkpoint = self->writer_checkpoint;
  node.chaser_checkpoint = self->chaser_checkpoint;
  node.last_commit_position = self->last_commit_position;
  if (is_refreshed(gossip, node.version)) {
    node.clock = skew_of(self->time_stamp, before, node.taken_at, kGossipGrain);
  }
  raw.names = client::own_names(gossip, asked ? *asked : http::Endpoint{});
  raw.gossip = std::move(gossip);
}

/// Of a single node, whose agent knows where its log ends by now: a node without others commits
/// what it writes.
void take_positions(planner::NodeSnapshot& node, std::int64_t end) {
  node.writer_checkpoint = std::max(node.writer_checkpoint, end);
  node.chaser_checkpoint = std::max(node.chaser_checkpoint, end);
  node.last_commit_position = std::max(node.last_commit_position, end);
}

using Limit = std::optional<std::chrono::milliseconds>;
/// A large thing that goes through many hands.
using SharedRaw = std::shared_ptr<Raw>;

/// Lets `work` fill `raw`, until `limit` at most: then `late` says so in it.
net::awaitable<SharedRaw> fill(http::Timers* timers, Limit limit, SharedRaw raw,
                               net::awaitable<void> work, void (*late)(Raw&)) {
  using net::experimental::awaitable_operators::operator||;
  if (!limit) {
    co_await std::move(work);
  } else if ((co_await (std::move(work) || timers->sleep_for(*limit))).index() == 1) {
    late(*raw);
  }
  co_return raw;  // late work has been cancelled and has ended
}

void node_is_late(Raw& raw) {
  if (!raw.node.answered) {
    raw.node.problem = "no answer in time";
  }
}

void agent_is_late(Raw& raw) {
  if (!raw.node.agent_answered) {
    raw.node.agent_problem = "no answer in time";
  }
}

net::awaitable<void> ask_node(SharedRaw into, std::shared_ptr<Peers> peers, ClusterNode config,
                              Clock* clock, std::shared_ptr<ObservationCache> cache, Depth depth) {
  auto& raw = *into;
  auto& node = raw.node;
  const auto before = clock->now();
  auto gossip = co_await peers->gossip(config.name);
  node.taken_at = clock->now();
  if (!gossip) {
    node.problem = gossip.error().message;
  } else {
    take_gossip(raw, std::move(*gossip), before);
  }
  if (node.answered && depth != Depth::kGossip && depth != Depth::kSurvey) {
    if (!api::parse_version(node.version)) {
      const auto info = co_await peers->info(config.name);
      if (info) {
        node.version = info->version;
      }
    }
    const auto current = co_await peers->current_scavenge(config.name);
    if (current) {
      node.scavenge_running = !current->id.empty();
      node.running.scavenge_id = current->id;
    } else if (current.error().code == Errc::kUnsupported) {
      node.problem = "it cannot tell whether a scavenge runs: " + current.error().message;
    } else {
      node.problem = current.error().message;
    }
    const auto version = api::parse_version(node.version);
    if (version && *version < api::Version{24, 10, 0}) {
      node.auto_scavenge = planner::AutoScavenge::kAbsent;
    } else if (depth != Depth::kStep) {
      const auto own = co_await peers->auto_scavenge(config.name);
      node.auto_scavenge = own ? *own : planner::AutoScavenge::kUnknown;
    }
    if (depth == Depth::kThorough && cache->has_metrics(node.url, node.instance_id)) {
      const auto index = co_await peers->index_status(config.name);
      if (index && !index->empty()) {
        node.index_merging = *index != "Idle";
      } else if (!index && index.error().code == Errc::kUnsupported) {
        cache->keep_without_metrics(node.url, node.instance_id);
      }
    }
  }
}

net::awaitable<void> ask_for_facts(SharedRaw into, std::shared_ptr<Peers> peers, ClusterNode config,
                                   Clock* clock) {
  auto& raw = *into;
  const auto before = clock->now();
  const auto facts = co_await peers->facts(config.name);
  if (!facts) {
    raw.node.agent_problem = facts.error().message;
    co_return;
  }
  raw.node.agent_answered = true;
  raw.node.clock = skew_of(facts->taken_at, before, clock->now(), std::chrono::milliseconds(0));
  raw.node.version = facts->node_version;
  raw.node.instance_id = facts->node_instance_id;
  raw.node.agent_work = detail::work_of(*facts);
  // A server in another process that does not answer is stopped for certain only where its agent
  // has stopped it.
  raw.node.stopped =
      !facts->node_running && (facts->node_problem.empty() || !facts->kept_stopped_by.empty());
  raw.node.stays_down = facts->stays_down;
  if (facts->node_running) {
    raw.node.agent = detail::to_facts(*facts);
  } else if (!facts->kept_stopped_by.empty()) {
    raw.node.agent_problem =
        fmt::format("its agent keeps the server stopped for {}", facts->kept_stopped_by);
  } else {
    raw.node.agent_problem =
        facts->node_problem.empty()
            ? "its agent says that the node is stopped"
            : fmt::format("its agent gets no answer of the node: {}", facts->node_problem);
  }
  raw.database_id = facts->database_id;
  raw.database_directory = facts->database_directory;
  raw.index_directory = facts->index_directory;
  if (facts->running) {
    // Until it has its point, a scavenge that runs is in no phase.
    const bool in_phase = !facts->running->phase.empty() && facts->running->phase != "Idle";
    raw.node.running = {facts->running->id, in_phase ? facts->running->phase : "starting",
                        facts->running->chunks_done, facts->running->chunks_total,
                        facts->running->bytes_saved};
    raw.node.scavenge_running = true;
  }
}

/// Two versions, both of which can be read.
bool differ(const std::string& a, const std::string& b) {
  const auto first = api::parse_version(a);
  const auto second = api::parse_version(b);
  return first && second && *first != *second;
}

/// Node and agent side by side, then one picture.
net::awaitable<SharedRaw> ask(std::shared_ptr<Peers> peers, ClusterNode config, Clock* clock,
                              http::Timers* timers, std::shared_ptr<ObservationCache> cache,
                              Depth depth, Limit limit) {
  std::vector<net::awaitable<SharedRaw>> questions;
  const auto of_node = std::make_shared<Raw>();
  of_node->node.name = config.name;
  of_node->node.url = config.url;
  of_node->node.agent_url = config.agent_url;
  of_node->node.taken_at = clock->now();
  questions.push_back(fill(timers, limit, of_node,
                           ask_node(of_node, peers, config, clock, std::move(cache), depth),
                           &node_is_late));
  if (!config.agent_url.empty() && depth != Depth::kGossip) {
    const auto of_agent = std::make_shared<Raw>();
    questions.push_back(fill(timers, limit, of_agent, ask_for_facts(of_agent, peers, config, clock),
                             &agent_is_late));
  }
  const auto answers = co_await gather(std::move(questions));
  auto& raw = *answers[0];
  if (answers.size() > 1) {
    auto& agent = *answers[1];
    raw.node.agent_answered = agent.node.agent_answered;
    raw.node.agent_problem = std::move(agent.node.agent_problem);
    raw.node.agent = std::move(agent.node.agent);
    raw.node.agent_work = std::move(agent.node.agent_work);
    raw.node.stopped = agent.node.stopped && !raw.node.answered;
    raw.node.stays_down = std::move(agent.node.stays_down);
    raw.database_id = std::move(agent.database_id);
    raw.database_directory = std::move(agent.database_directory);
    raw.index_directory = std::move(agent.index_directory);
    if (agent.node.clock) {
      raw.node.clock = agent.node.clock;  // of this moment; gossip's may be older
    }
    if (agent.node.scavenge_running.value_or(false) && raw.node.answered) {
      raw.node.scavenge_running = true;
      const auto id = raw.node.running.scavenge_id;
      raw.node.running = std::move(agent.node.running);
      if (raw.node.running.scavenge_id.empty()) {
        raw.node.running.scavenge_id = id;
      }
    }
    if (raw.node.answered && agent.node.agent_answered && !agent.node.instance_id.empty() &&
        agent.node.instance_id != raw.node.instance_id) {
      // Either the node has just been restarted between both answers, or the agent is another's.
      raw.node.agent_answered = false;
      raw.node.agent.reset();
      raw.node.agent_problem = fmt::format(
          "its agent looks after the instance {}, the node is {}: the agent is another "
          "node's, or the node has just been restarted",
          agent.node.instance_id, raw.node.instance_id);
    } else if (raw.node.answered && agent.node.agent_answered &&
               differ(agent.node.version, raw.node.version)) {
      raw.node.agent_answered = false;
      raw.node.agent.reset();
      raw.node.agent_problem =
          fmt::format("its agent says that the node is version {}, the node says {}",
                      agent.node.version, raw.node.version);
    }
    if (raw.node.agent && raw.gossip && !is_refreshed(*raw.gossip, raw.node.version)) {
      take_positions(raw.node, raw.node.agent->writer_checkpoint);
    }
  }
  co_return answers[0];
}

/// Without the credentials that were registered nothing can be done there: no node is queried.
std::vector<Raw> not_asked(const ClusterConfig& config, const Error& why, Ticks now) {
  std::vector<Raw> raws;
  for (const auto& node : config.nodes) {
    Raw raw;
    raw.node.name = node.name;
    raw.node.url = node.url;
    raw.node.agent_url = node.agent_url;
    raw.node.taken_at = now;
    raw.node.problem = why.message;
    raw.node.remedy = "put that file into vergerd's credentials directory; it is read at each look";
    raws.push_back(std::move(raw));
  }
  return raws;
}

/// Those that join come last. With `closely_at`, all the others are only queried for their gossip.
net::awaitable<std::vector<Raw>> ask_all(Network network, std::shared_ptr<ObservationCache> cache,
                                         ClusterConfig config, Depth depth, Limit limit,
                                         Limit limit_of_others, std::string closely_at) {
  if (!config.credentials.empty()) {
    const auto found = network.credentials.find(config.credentials);
    if (!found) {
      co_return not_asked(config, found.error(), network.clock.now());
    }
  }
  auto peers = std::make_shared<Peers>(network, config);
  auto* clock = &network.clock;
  std::vector<net::awaitable<SharedRaw>> questions;
  const auto count = config.nodes.size() + config.joining.size();
  questions.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& node =
        i < config.nodes.size() ? config.nodes[i] : config.joining[i - config.nodes.size()].node;
    const bool near = closely_at.empty() || closely_at == node.name;
    questions.push_back(ask(peers, node, clock, &network.timers, cache,
                            near ? depth : Depth::kGossip, near ? limit : limit_of_others));
  }
  std::vector<Raw> raws;
  raws.reserve(count);
  for (const auto& answer : co_await gather(std::move(questions))) {
    raws.push_back(std::move(*answer));
  }
  for (std::size_t i = 0; i < config.joining.size(); ++i) {
    auto& node = raws[config.nodes.size() + i].node;
    if (!node.answered) {
      node.read_only_replica = config.joining[i].read_only_replica;
    }
  }
  co_return raws;
}

}  // namespace

struct Observer::State {
  explicit State(Network n) : network(std::move(n)) {}
  Network network;
  std::shared_ptr<ObservationCache> cache = std::make_shared<ObservationCache>();
  std::map<std::string, std::shared_ptr<const ClusterSnapshot>> last_seen;  ///< by cluster
};

Observer::Observer(Network network) : state_(std::make_shared<State>(std::move(network))) {}
Observer::~Observer() = default;

// The coroutines may outlive the observer.
net::awaitable<ClusterSnapshot> Observer::take(ClusterConfig config, Depth depth, Limit limit) {
  std::optional<WatchLimits> limits;
  if (limit) {
    limits = WatchLimits{.node = *limit, .others = *limit};
  }
  return look(state_, std::move(config), depth, limits, {});
}

net::awaitable<ClusterSnapshot> Observer::watch(ClusterConfig config, std::string node,
                                                std::optional<WatchLimits> limits) {
  return look(state_, std::move(config), Depth::kStep, limits, std::move(node));
}

void Observer::forget_certificates(const ClusterConfig& config) {
  for (const auto& node : config.nodes) {
    state_->cache->forget_certificate(node.url);
    state_->cache->forget_certificate(node.agent_url);
  }
}

Result<void> Observer::check_credentials(const ClusterConfig& config) const {
  if (config.credentials.empty()) {
    return {};
  }
  const auto found = state_->network.credentials.find(config.credentials);
  for (const auto& node : config.nodes) {
    const auto endpoint = http::parse_endpoint(node.url);
    if (found && endpoint) {
      VERGER_RETURN_IF_ERROR(check_host(*found, config.credentials, *endpoint));
    }
  }
  return {};
}

net::awaitable<ClusterSnapshot> Observer::look(std::shared_ptr<State> state, ClusterConfig config,
                                               Depth depth, std::optional<WatchLimits> limits,
                                               std::string closely_at) {
  auto snapshot = co_await picture(state, std::move(config), depth, limits, std::move(closely_at));
  if (depth == Depth::kSurvey || depth == Depth::kThorough) {
    state->last_seen[snapshot.cluster] = std::make_shared<const ClusterSnapshot>(snapshot);
  }
  co_return snapshot;
}

std::shared_ptr<const ClusterSnapshot> Observer::last_seen(const std::string& cluster) const {
  const auto found = state_->last_seen.find(cluster);
  return found == state_->last_seen.end() ? nullptr : found->second;
}

void Observer::keep_last_seen_of(const std::set<std::string>& clusters) {
  std::erase_if(state_->last_seen,
                [&clusters](const auto& each) { return !clusters.contains(each.first); });
}

net::awaitable<ClusterSnapshot> Observer::picture(std::shared_ptr<State> state,
                                                  ClusterConfig config, Depth depth,
                                                  std::optional<WatchLimits> limits,
                                                  std::string closely_at) {
  const auto began = state->network.clock.monotonic();
  auto limit = limits ? Limit(limits->node) : std::nullopt;
  auto raws =
      co_await ask_all(state->network, state->cache, config, depth, limit,
                       limits ? Limit(limits->others) : std::nullopt, std::move(closely_at));
  ClusterSnapshot snapshot;
  snapshot.cluster = config.name;
  snapshot.taken_at = state->network.clock.now();
  if (depth == Depth::kThorough && !config.credentials.empty()) {
    const auto kept = state->network.credentials.find(config.credentials);
    if (kept && !kept->warning.empty()) {
      snapshot.warnings.push_back(kept->warning);
    }
  }
  detail::compare(raws, config, snapshot);
  for (std::size_t i = 0; i < raws.size(); ++i) {
    auto& list = i < config.nodes.size() ? snapshot.nodes : snapshot.joining;
    list.push_back(std::move(raws[i].node));
  }
  if (snapshot.wrong_cluster.empty() && config.identity.empty()) {
    snapshot.wrong_cluster = contradicts_epoch(snapshot, config.epoch);
  }
  if (!limit) {
    state->cache->compare(snapshot, state->network.clock.monotonic());
  }
  if (depth == Depth::kSurvey || depth == Depth::kThorough) {
    if (limit) {
      const auto took = state->network.clock.monotonic() - began;
      limit = std::max(*limit - std::chrono::duration_cast<std::chrono::milliseconds>(took),
                       std::chrono::milliseconds(0));
    }
    co_await detail::look_at_certificates(state->network, state->cache, config, depth, limit,
                                          snapshot);
  }
  co_return snapshot;
}

net::awaitable<std::string> Observer::identity(ClusterConfig config) {
  const auto state = state_;
  const auto raws =
      co_await ask_all(state->network, state->cache, std::move(config), Depth::kQuick, {}, {}, {});
  std::set<std::string> ids;
  for (const auto& raw : raws) {
    if (!raw.database_id.empty()) {
      ids.insert(raw.database_id);
    }
  }
  co_return ids.size() == 1 ? *ids.begin() : std::string();
}

std::string newer_controller(const planner::ClusterSnapshot& snapshot, ControllerEpoch epoch) {
  const planner::NodeSnapshot* newest = nullptr;
  for (const auto& node : snapshot.nodes) {
    if (node.agent && node.agent->highest_controller_epoch > epoch.value() &&
        (newest == nullptr ||
         node.agent->highest_controller_epoch > newest->agent->highest_controller_epoch)) {
      newest = &node;
    }
  }
  return newest == nullptr
             ? std::string()
             : fmt::format(
                   "the agent of {} obeys a controller with epoch {}, and this one has "
                   "epoch {}: another vergerd looks after the cluster, or did",
                   newest->name, newest->agent->highest_controller_epoch, epoch.value());
}

}  // namespace verger::controller
