#include "nodeagent/node/detail/core.h"

#include "engine/base/failpoint.h"
#include "nodeagent/node/authentication.h"
#include "nodeagent/node/detail/following.h"
#include "nodeagent/node/detail/gossip_service.h"
#include "nodeagent/node/detail/leadership.h"
#include "nodeagent/node/persistent_subscriptions.h"
#include "nodeagent/node/scavenger.h"
#include "nodeagent/node/users.h"
#include "nodeagent/node/write_service.h"

namespace verger::node {

Core::Core(NodeOptions node_options, NodeEnvironment environment,
           std::unique_ptr<streams::Database> database)
    : NodeContext(std::move(node_options), std::move(environment), std::move(database)),
      gossip(std::make_unique<GossipService>(*this, [this] { return election->describe_self(); })),
      election(std::make_unique<ElectionDriver>(*this, *gossip,
                                                static_cast<ElectionConsequences&>(*this))),
      leadership(std::make_unique<Leadership>(*this, *election)),
      following(std::make_unique<Following>(*this, *gossip, *election)),
      authenticator(std::make_unique<Authenticator>(*this)),
      subscriptions(std::make_unique<PersistentSubscriptions>(
          *this,
          [this](WriteRequest request) { return write(shared_from_this(), std::move(request)); })),
      memory_streams(env.random) {}

Core::~Core() = default;

void Core::start(NodeAddresses node_addresses) {
  set_started(std::move(node_addresses));
  if (log().truncated_at_open()) {
    VERGER_FAILPOINT("node.truncated-at-open");
    if (options.misbehaviour.exits_to_truncate) {
      env.on_shutdown();
    }
  }
  gossip->add_seeds();
  scavenger = std::make_unique<Scavenger>(*this, [this](WriteRequest request) {
    return write(shared_from_this(), std::move(request));
  });
  env.log.info("node started", {{"node", self},
                                {"instance", instance.to_string()},
                                {"writer", std::to_string(log().end().value())}});
  election->start();
  spawn(tick_loop(shared_from_this()));
  gossip->start();
}

void Core::begin_stop() { set_stopping(); }

void Core::abandon() {
  set_stopped();
  following->stop();
  leadership->drop();
  subscriptions->stop();
  if (scavenger) {
    scavenger->abandon();
  }
  drop_tasks();
  changed.notify();
}

void Core::fail(const Error& error) {
  if (failed()) {
    return;
  }
  env.log.error("the node's disk failed; it serves no more", {{"reason", error.message}});
  leadership->drop();
  subscriptions->stop();
  following->stop();
  set_failed();
  changed.notify();
  env.on_failure(error);
}

void Core::follow(const LeaderInfo& leader) { following->follow(leader); }
void Core::stop_following() { following->stop(); }
void Core::prepare_to_lead(EpochNumber term) { leadership->prepare(term); }
void Core::drain() { leadership->drain(); }
void Core::stop_leading() { leadership->stop(); }

void Core::state_changed(api::NodeState state) {
  memory_streams.state_changed(state, env.clock.now());
  gossip_look_due_ = now();
  scavenger->state_changed(state);
  if (state == api::NodeState::kLeader) {
    subscriptions->lead();
  } else {
    subscriptions->stop();
  }
  if (state == api::NodeState::kLeader && !options.insecure) {
    spawn(create_default_users(shared_from_this()));
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
  election->refresh_log();
  gossip->tick(election->leader());
  following->tick();
  leadership->tick();
  election->tick();
  subscriptions->tick();
  save_checkpoints();
  if (now() >= gossip_look_due_) {
    look_at_gossip();
  }
  if (leadership->confirming()) {
    changed.notify();  // deadlines are looked at by those that wait
  }
}

void Core::look_at_gossip() {
  constexpr std::chrono::seconds kBetweenLooks{1};
  gossip_look_due_ = now() + kBetweenLooks;
  if (memory_streams.gossip_seen(instance, gossip->view(election->leader()), env.clock.now())) {
    changed.notify();
  }
}

void Core::save_checkpoints() {
  constexpr std::chrono::seconds kAfterAFailure{60};
  const bool due = now() >= checkpoints_due_;
  if (!due && !publishes_chaser_) {
    return;
  }
  // Eight bytes where something was committed since, of which one sync each interval; nothing
  // otherwise. A copy that is made beside the node ends at what they say.
  const auto saved = due ? log().flush_checkpoints() : log().publish_chaser();
  publishes_chaser_ = saved.has_value();
  if (due) {
    checkpoints_due_ = now() + options.timings.checkpoint_interval;
  }
  if (!saved) {
    checkpoints_due_ = now() + kAfterAFailure;
    env.log.warning("checkpoints not saved", {{"reason", saved.error().message}});
  }
}

}  // namespace verger::node
