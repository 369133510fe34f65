#include "nodeagent/operations/resign_first.h"

#include <chrono>

#include "nodeagent/client/judge.h"

namespace verger::agent {
namespace {

/// Only the node's gossip shows that it has resigned.
constexpr std::chrono::milliseconds kResignLook{250};
constexpr int kResignLooks = 40;

net::awaitable<bool> node_leads(LocalNode node) {
  const auto gossip = client::to_result(co_await node.client.gossip());
  if (!gossip || gossip->members.size() < 2) {
    co_return false;
  }
  const auto* self = client::answering_member(*gossip, node.client.node());
  co_return self != nullptr &&
      (self->state == api::NodeState::kLeader || self->state == api::NodeState::kResigningLeader);
}

}  // namespace

net::awaitable<void> resign_first(LocalNode node) {
  if (node.inspection() == nullptr || !co_await node_leads(node)) {
    co_return;
  }
  node.log.info("the server resigns before it is stopped");
  static_cast<void>(co_await node.client.resign());
  for (int looks = 0; looks < kResignLooks && co_await node_leads(node); ++looks) {
    co_await node.timers.sleep_for(kResignLook);
  }
}

}  // namespace verger::agent
