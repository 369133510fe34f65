// Between the election's state machine and the world: effects out, messages and time in.
#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
#include "nodeagent/node/authentication.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/election_json.h"
#include "nodeagent/node/scavenger.h"
#include "nodeagent/node/users.h"

namespace verger::node {
namespace {

LogState log_state(Core& core) {
  LogState state;
  const auto last = core.log().epochs().last();
  if (last) {
    state.last_epoch = last->number;
    state.epoch_position = last->position;
    state.epoch_id = last->id;
  }
  // As the server's chaser, which reads what is flushed, committed or not.
  state.writer = state.chaser = core.log().end();
  return state;
}

Uuid last_epoch_leader(Core& core) {
  const auto last = core.log().epochs().last();
  return last ? last->leader_instance_id : Uuid{};
}

}  // namespace

Core::Core(NodeOptions node_options, NodeEnvironment environment,
           std::unique_ptr<streams::Database> db)
    : options(std::move(node_options)),
      env(std::move(environment)),
      instance(env.random.uuid()),
      database(std::move(db)),
      members(options.timings.dead_member_removal),
      tasks(std::make_unique<http::TaskGroup>(env.executor, env.log, "node")),
      authenticator(std::make_unique<Authenticator>(*this)),
      born(env.clock.now()),
      changed(env.executor) {}

Core::~Core() = default;

void Core::start(NodeAddresses node_addresses) {
  addresses = std::move(node_addresses);
  self = node_id(addresses.http);
  ElectionConfig config;
  config.self = self;
  config.instance = instance;
  config.cluster_size = options.cluster_size;
  config.read_only = options.read_only_replica;
  config.priority = options.node_priority;
  config.discover_leader = options.timings.discover_leader;
  config.election_timeout = options.timings.election_timeout;
  config.quorum_loss_wait = options.timings.quorum_loss_wait;
  config.drain_timeout = options.timings.write_timeout * 2;
  config.seed = env.random.next();
  const EpochNumber proposal(log().checkpoints().proposal);
  election =
      std::make_unique<Election>(config, proposal, log_state(*this), last_epoch_leader(*this));
  started = true;
  if (log().truncated_at_open()) {
    VERGER_FAILPOINT("node.truncated-at-open");
    if (options.misbehaviour.exits_to_truncate) {
      env.on_shutdown();
    }
  }
  for (const auto& seed : options.gossip_seeds) {
    members.add_seed(seed, env.clock.now());
  }
  members.set_self(describe_self());
  election->set_peers(members.voters(true), members.voters(false));
  scavenger = std::make_unique<Scavenger>(*this);
  env.log.info("node started", {{"node", self},
                                {"instance", instance.to_string()},
                                {"writer", std::to_string(log().end().value())}});
  apply(election->start(now()));
  tasks->spawn(tick_loop(shared_from_this()));
  if (options.cluster_size > 1 || options.read_only_replica || !options.gossip_seeds.empty()) {
    tasks->spawn(gossip_loop(shared_from_this()));
  }
}

void Core::abandon() {
  stopped = true;
  if (link) {
    link->close();
    link.reset();
  }
  for (const auto& subscriber : subscribers) {
    subscriber->close();
  }
  subscribers.clear();
  for (const auto& waiter : waiters) {
    waiter->lost = true;
  }
  waiters.clear();
  if (scavenger) {
    scavenger->abandon();
  }
  // The coroutines keep the group's state; nothing is cancelled a second time when they are gone.
  tasks.reset();
  changed.notify();
}

void Core::fail(const Error& error) {
  if (failed) {
    return;
  }
  env.log.error("the node's disk failed; it serves no more", {{"reason", error.message}});
  stop_leading();
  if (link) {
    link->close();
    link.reset();
  }
  failed = true;
  changed.notify();
  env.on_failure(error);
}

api::NodeState Core::state() const {
  if (!started) {
    return api::NodeState::kInitializing;
  }
  return stopped || failed ? api::NodeState::kShutdown : election->state();
}

std::optional<NodeId> Core::leader_id() const {
  if (!started || !election->leader()) {
    return std::nullopt;
  }
  return election->leader()->node;
}

Member Core::describe_self() {
  Member member;
  member.instance = instance;
  member.timestamp = env.clock.now();
  member.state = state();
  member.http = addresses.http;
  member.replication = addresses.replication;
  member.committed = db().committed();
  member.log = log_state(*this);
  member.priority = election ? election->priority() : options.node_priority;
  member.read_only = options.read_only_replica;
  return member;
}

void Core::refresh_log() {
  election->set_log(log_state(*this), last_epoch_leader(*this));
  election->set_peers(members.voters(true), members.voters(false));
}

void Core::apply(const Effects& effects) {
  for (const auto& effect : effects) {
    if (failed || stopped) {
      return;
    }
    if (const auto* persist = std::get_if<effect::PersistTerm>(&effect)) {
      log().set_proposal(persist->term.value());
      if (const auto saved = log().flush_checkpoints(); !saved) {
        fail(saved.error().within("vote not recorded"));
        return;
      }
    } else if (const auto* message = std::get_if<effect::Send>(&effect)) {
      if (replies_ != nullptr && message->message.to == replying_to_) {
        replies_->push_back(message->message);
      } else {
        send(message->message);
      }
    } else if (std::holds_alternative<effect::StopFollowing>(effect)) {
      if (link) {
        link->close();
        link.reset();
      }
    } else if (const auto* follow = std::get_if<effect::Follow>(&effect)) {
      if (link) {
        link->close();
      }
      link = std::make_shared<LeaderLink>();
      link->leader = follow->leader;
      link->last_heard = now();
      tasks->spawn(follow_leader(shared_from_this(), link));
    } else if (const auto* prepare = std::get_if<effect::PrepareToLead>(&effect)) {
      prepare_to_lead(prepare->term);
    } else if (std::holds_alternative<effect::StopLeading>(effect)) {
      if (draining) {
        VERGER_FAILPOINT("node.resign.before-unknown");
      }
      stop_leading();
    } else if (std::holds_alternative<effect::Drain>(effect)) {
      draining = true;
    } else if (const auto* change = std::get_if<effect::StateChanged>(&effect)) {
      env.log.info("node state", {{"node", self},
                                  {"state", std::string(api::to_string(change->state))},
                                  {"term", std::to_string(election->term().value())}});
      members.set_self(describe_self());
      if (const auto leader = leader_id()) {
        last_leader = leader;
      }
      changed.notify();
      if (change->state == api::NodeState::kResigningLeader &&
          options.misbehaviour.resignation_crashes > 0) {
        --options.misbehaviour.resignation_crashes;
        fail(Error{Errc::kConflict, "a message was not handled in state ResigningLeader"});
        return;
      }
      scavenger->state_changed(change->state);
      if (change->state == api::NodeState::kLeader) {
        misbehave_as_leader();
        if (!options.insecure) {
          tasks->spawn(create_default_users(shared_from_this()));
        }
      }
    }
  }
}

void Core::misbehave_as_leader() {
  if (priority_after_election) {
    election->set_priority(*std::exchange(priority_after_election, std::nullopt));
    members.set_self(describe_self());
  }
  if (options.misbehaviour.short_leads > 0) {
    --options.misbehaviour.short_leads;
    const auto give_up = [](std::shared_ptr<Core> core) -> net::awaitable<void> {
      co_await core->env.timers.sleep_for(core->options.misbehaviour.short_lead);
      if (core->serving()) {
        core->apply(core->election->resign(core->now()));
      }
    };
    tasks->spawn(give_up(shared_from_this()));
  }
}

void Core::receive(const ElectionMessage& message, std::vector<ElectionMessage>* replies) {
  if (!serving() || stopping) {
    return;
  }
  refresh_log();
  replies_ = replies;
  replying_to_ = message.from;
  apply(election->receive(now(), message));
  replies_ = nullptr;
}

void Core::send(ElectionMessage message) {
  if (tasks) {
    tasks->spawn(post(shared_from_this(), std::move(message)));
  }
}

net::awaitable<void> Core::post(std::shared_ptr<Core> core, ElectionMessage message) {
  const auto* member = core->members.find(message.to);
  if (member == nullptr) {
    co_return;
  }
  const auto endpoint = member->http;
  http::Request request;
  request.method = "POST";
  request.target = "/verger/v1/election";
  request.headers.set("Content-Type", "application/json");
  request.body = to_json(message).dump();
  auto response = co_await core->env.client.send(endpoint, std::move(request),
                                                 core->options.timings.election_timeout);
  if (!response || response->status != 200 || !core->serving()) {
    co_return;
  }
  const auto replies = nlohmann::json::parse(response->body, nullptr, false);
  if (!replies.is_array()) {
    co_return;
  }
  for (const auto& reply : replies) {
    if (const auto parsed = parse_election_message(reply)) {
      core->receive(*parsed, nullptr);
    }
  }
}

net::awaitable<void> Core::tick_loop(std::shared_ptr<Core> core) {
  while (core->serving()) {
    co_await core->env.timers.sleep_for(core->options.timings.tick);
    if (core->serving()) {
      core->tick();
    }
  }
}

void Core::tick() {
  const auto time = now();
  refresh_log();
  if (options.misbehaviour.gossip_lag.count() > 0) {
    members.set_self(describe_self());
    gossip_past.emplace_back(time, members.view(leader_id()));
    while (gossip_past.size() > 1 &&
           time - gossip_past[1].first >= options.misbehaviour.gossip_lag) {
      gossip_past.pop_front();
    }
  }
  if (link && time - link->last_heard > options.timings.heartbeat_timeout) {
    env.log.warning("the leader is silent", {{"node", self}, {"leader", link->leader.node}});
    link->close();
  }
  std::set<NodeId> voters;
  for (const auto& subscriber : subscribers) {
    if (time - subscriber->last_heard > options.timings.heartbeat_timeout) {
      subscriber->close();
    } else if (subscriber->accepted && !subscriber->closed) {
      if (subscriber->voter) {
        voters.insert(subscriber->node);
      }
      if (time - subscriber->last_sent >= options.timings.heartbeat_interval) {
        subscriber->wake.notify();
      }
    }
  }
  if (election->leads(leading_term)) {
    apply(election->subscribers(time, static_cast<int>(voters.size())));
    if (draining && waiters.empty()) {
      apply(election->drained(time));
    }
  }
  apply(election->tick(time));
  if (!waiters.empty()) {
    changed.notify();  // deadlines are looked at by those who wait
  }
}

http::Response answer_election(Core& core, const std::string& body) {
  const auto parsed = nlohmann::json::parse(body, nullptr, false);
  const auto message = parse_election_message(parsed);
  if (!message) {
    return {.status = 400, .body = message.error().message};
  }
  std::vector<ElectionMessage> replies;
  core.receive(*message, &replies);
  auto out = nlohmann::json::array();
  for (const auto& reply : replies) {
    out.push_back(to_json(reply));
  }
  http::Response response;
  response.headers.set("Content-Type", "application/json");
  response.body = out.dump();
  return response;
}

}  // namespace verger::node
