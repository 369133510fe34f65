#include "nodeagent/node/detail/election_driver.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
#include "nodeagent/node/election_json.h"

namespace verger::node {

ElectionDriver::ElectionDriver(NodeContext& context, GossipService& gossip,
                               ElectionConsequences& consequences)
    : context_(context), gossip_(gossip), consequences_(consequences) {}

LogState ElectionDriver::log_state() const {
  const auto& log = context_.log();
  LogState state;
  const auto last = log.epochs().last();
  if (last) {
    state.last_epoch = last->number;
    state.epoch_position = last->position;
    state.epoch_id = last->id;
  }
  // As the server's chaser, which reads what is flushed, committed or not.
  state.writer = state.chaser = log.end();
  return state;
}

Uuid ElectionDriver::last_epoch_leader() const {
  const auto last = context_.log().epochs().last();
  return last ? last->leader_instance_id : Uuid{};
}

void ElectionDriver::start() {
  const auto& options = context_.options;
  ElectionConfig config;
  config.self = context_.self;
  config.instance = context_.instance;
  config.cluster_size = options.cluster_size;
  config.read_only = options.read_only_replica;
  config.priority = options.node_priority;
  config.discover_leader = options.timings.discover_leader;
  config.election_timeout = options.timings.election_timeout;
  config.quorum_loss_wait = options.timings.quorum_loss_wait;
  config.drain_timeout = options.timings.write_timeout * 2;
  config.seed = context_.env.random.next();
  const EpochNumber proposal(context_.log().checkpoints().proposal);
  election_ = std::make_unique<Election>(config, proposal, log_state(), last_epoch_leader());
  gossip_.refresh_self();
  election_->set_peers(gossip_.voters(true), gossip_.voters(false));
  apply(election_->start(context_.now()));
}

void ElectionDriver::tick() { apply(election_->tick(context_.now())); }

api::NodeState ElectionDriver::state() const {
  if (!election_) {
    return api::NodeState::kInitializing;
  }
  return context_.serving() ? election_->state() : api::NodeState::kShutdown;
}

std::optional<NodeId> ElectionDriver::leader() const {
  if (!election_ || !election_->leader()) {
    return std::nullopt;
  }
  return election_->leader()->node;
}

Member ElectionDriver::describe_self() const {
  Member member;
  member.instance = context_.instance;
  member.timestamp = context_.env.clock.now();
  member.state = state();
  member.http = context_.addresses.http;
  member.replication = context_.addresses.replication;
  member.committed = context_.db().committed();
  member.log = log_state();
  member.priority = election_ ? election_->priority() : context_.options.node_priority;
  member.read_only = context_.options.read_only_replica;
  return member;
}

// --- Reports and wishes ---

void ElectionDriver::refresh_log() {
  election_->set_log(log_state(), last_epoch_leader());
  election_->set_peers(gossip_.voters(true), gossip_.voters(false));
}

void ElectionDriver::epoch_committed(EpochNumber term) {
  apply(election_->lead(context_.now(), term));
}

void ElectionDriver::link_changed(EpochNumber term, LinkState link) {
  apply(election_->link(context_.now(), term, link));
}

void ElectionDriver::subscribed_voters(int count) {
  apply(election_->subscribers(context_.now(), count));
}

void ElectionDriver::drained() { apply(election_->drained(context_.now())); }

void ElectionDriver::resign() {
  if (auto& wins = context_.options.misbehaviour.wins_resignations; wins > 0) {
    --wins;
    priority_after_election_ = election_->priority();
    election_->set_priority(std::numeric_limits<std::int32_t>::max());
  }
  apply(election_->resign(context_.now()));
}

void ElectionDriver::shut_down() { apply(election_->shut_down(context_.now())); }

// --- Effects ---

void ElectionDriver::apply(const Effects& effects) {
  for (const auto& effect : effects) {
    if (context_.failed() || context_.stopped()) {
      return;
    }
    std::visit([this](const auto& one) { on(one); }, effect);
  }
}

void ElectionDriver::on(const effect::PersistTerm& persist) {
  context_.log().set_proposal(persist.term.value());
  if (const auto saved = context_.log().flush_checkpoints(); !saved) {
    context_.fail(saved.error().within("vote not recorded"));
  }
}

void ElectionDriver::on(const effect::Send& send) {
  if (replies_ != nullptr && send.message.to == replying_to_) {
    replies_->push_back(send.message);
  } else {
    context_.spawn(post(context_.keep(*this), send.message));
  }
}

void ElectionDriver::on(const effect::StopFollowing&) { consequences_.stop_following(); }
void ElectionDriver::on(const effect::Follow& follow) { consequences_.follow(follow.leader); }
void ElectionDriver::on(const effect::PrepareToLead& prepare) {
  consequences_.prepare_to_lead(prepare.term);
}
void ElectionDriver::on(const effect::StopLeading&) { consequences_.stop_leading(); }
void ElectionDriver::on(const effect::Drain&) { consequences_.drain(); }

void ElectionDriver::on(const effect::StateChanged& change) {
  context_.env.log.info("node state", {{"node", context_.self},
                                       {"state", std::string(api::to_string(change.state))},
                                       {"term", std::to_string(term().value())}});
  gossip_.refresh_self();
  if (auto now_leading = leader()) {
    last_leader_ = std::move(now_leading);
  }
  context_.changed.notify();
  auto& crashes = context_.options.misbehaviour.resignation_crashes;
  if (change.state == api::NodeState::kResigningLeader && crashes > 0) {
    --crashes;
    context_.fail(Error{Errc::kConflict, "a message was not handled in state ResigningLeader"});
    return;
  }
  if (change.state == api::NodeState::kLeader) {
    misbehave_as_leader();
  }
  consequences_.state_changed(change.state);
}

void ElectionDriver::misbehave_as_leader() {
  if (priority_after_election_) {
    election_->set_priority(*std::exchange(priority_after_election_, std::nullopt));
    gossip_.refresh_self();
  }
  if (context_.options.misbehaviour.short_leads > 0) {
    --context_.options.misbehaviour.short_leads;
    context_.spawn(give_up_lead(context_.keep(*this)));
  }
}

net::awaitable<void> ElectionDriver::give_up_lead(std::shared_ptr<ElectionDriver> driver) {
  const auto& context = driver->context_;
  co_await context.env.timers.sleep_for(context.options.misbehaviour.short_lead);
  if (context.serving()) {
    driver->apply(driver->election_->resign(context.now()));
  }
}

// --- Messages ---

void ElectionDriver::receive(const ElectionMessage& message,
                             std::vector<ElectionMessage>* replies) {
  if (!context_.takes_work()) {
    return;
  }
  refresh_log();
  replies_ = replies;
  replying_to_ = message.from;
  apply(election_->receive(context_.now(), message));
  replies_ = nullptr;
}

net::awaitable<void> ElectionDriver::post(std::shared_ptr<ElectionDriver> driver,
                                          ElectionMessage message) {
  const auto& context = driver->context_;
  const auto* member = driver->gossip_.find(message.to);
  if (member == nullptr) {
    co_return;
  }
  const auto endpoint = member->http;
  http::Request request;
  request.method = "POST";
  request.target = "/verger/v1/election";
  request.headers.set("Content-Type", "application/json");
  request.body = to_json(message).dump();
  auto response = co_await context.env.client.send(endpoint, std::move(request),
                                                   context.options.timings.election_timeout);
  if (!response || response->status != 200 || !context.serving()) {
    co_return;
  }
  const auto replies = nlohmann::json::parse(response->body, nullptr, false);
  if (!replies.is_array()) {
    co_return;
  }
  for (const auto& reply : replies) {
    if (const auto parsed = parse_election_message(reply)) {
      driver->receive(*parsed, nullptr);
    }
  }
}

http::Response ElectionDriver::answer(const std::string& body) {
  const auto parsed = nlohmann::json::parse(body, nullptr, false);
  const auto message = parse_election_message(parsed);
  if (!message) {
    return {.status = 400, .body = message.error().message};
  }
  std::vector<ElectionMessage> replies;
  receive(*message, &replies);
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
