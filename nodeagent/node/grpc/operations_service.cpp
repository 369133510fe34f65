// Operations: what POST /admin/* does, by the same parts.
#include <algorithm>
#include <event_store/operations.pb.h>

#include "nodeagent/node/grpc/service_base.h"
#include "nodeagent/node/node_api.h"
#include "nodeagent/node/persistent_subscriptions.h"
#include "nodeagent/node/scavenger.h"

namespace verger::node::rpc {
namespace {

using ::verger::grpc::Code;
using ::verger::grpc::Status;
namespace es = event_store::client;
namespace ops = event_store::client::operations;

constexpr const char* kNoScavengeId = "00000000-0000-0000-0000-000000000000";

net::awaitable<Status> start_scavenge(NodeCall at) {
  const auto request = co_await at.call->only<ops::StartScavengeReq>();
  if (!request) {
    co_return request.error();
  }
  if (!request->has_options()) {
    co_return grpc::handler_failed();
  }
  // Servers up to 24.10 fail with 0 threads once they execute chunks; later ones take it for 1.
  const auto started =
      at.core->scavenger->start({.threads = std::max(1, request->options().thread_count())});
  ops::ScavengeResp response;
  if (started) {
    response.set_scavenge_id(*started);
    response.set_scavenge_result(ops::ScavengeResp::Started);
  } else {
    const auto& running = at.core->scavenger->current();
    response.set_scavenge_id(running.empty() ? kNoScavengeId : running);
    response.set_scavenge_result(ops::ScavengeResp::InProgress);
  }
  co_await at.call->write(response);
  co_return Status{};
}

net::awaitable<Status> stop_scavenge(NodeCall at) {
  const auto request = co_await at.call->only<ops::StopScavengeReq>();
  if (!request) {
    co_return request.error();
  }
  if (!request->has_options()) {
    co_return grpc::handler_failed();
  }
  std::string running(at.core->scavenger->current());  // it may change until the run has stopped
  const auto stopped = co_await Scavenger::stop(at.core->keep(*at.core->scavenger),
                                                request->options().scavenge_id());
  if (!stopped) {
    co_return Status{
        .code = Code::kNotFound,
        .message = "Scavenge id was invalid.",
        .metadata = {{"exception", "scavenge-not-found"}, {"scavenge-id", std::move(running)}}};
  }
  ops::ScavengeResp response;
  response.set_scavenge_id(*stopped);
  response.set_scavenge_result(ops::ScavengeResp::Stopped);
  co_await at.call->write(response);
  co_return Status{};
}

template <class Request>
using Act = void (*)(Core&, const Request&);

template <class Request>
net::awaitable<Status> act_and_answer(NodeCall at, Act<Request> act) {
  const auto request = co_await at.call->only<Request>();
  if (!request) {
    co_return request.error();
  }
  act(*at.core, *request);
  co_await at.call->write(es::Empty());
  co_return Status{};
}

/// A method that answers at once with nothing.
template <class Request>
NodeMethod simple(Act<Request> act) {
  return [act](NodeCall at) { return act_and_answer<Request>(std::move(at), act); };
}

}  // namespace

void add_operations(const Registry& registry) {
  const auto add = [&](const char* name, NodeMethod method) {
    registry.add("operations.Operations", name, only_for(Need::kOperator, std::move(method)));
  };
  add("StartScavenge", start_scavenge);
  add("StopScavenge", stop_scavenge);
  add("Shutdown", simple<es::Empty>([](Core& core, const es::Empty&) { shut_down(core); }));
  add("MergeIndexes", simple<es::Empty>([](Core& core, const es::Empty&) { merge_index(core); }));
  add("ResignNode", simple<es::Empty>([](Core& core, const es::Empty&) { resign_lead(core); }));
  add("SetNodePriority",
      simple<ops::SetNodePriorityReq>([](Core& core, const ops::SetNodePriorityReq& request) {
        change_priority(core, request.priority());
      }));
  // As the server, it answers the same where it cannot restart.
  add("RestartPersistentSubscriptions",
      simple<es::Empty>([](Core& core, const es::Empty&) { core.subscriptions->restart(); }));
}

}  // namespace verger::node::rpc
