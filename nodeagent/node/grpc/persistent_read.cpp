// PersistentSubscriptions: Read. Messages go one way, answers the other, independently.
#include <algorithm>

#include "nodeagent/node/grpc/group_requests.h"
#include "nodeagent/node/grpc/recorded_event.h"

namespace verger::node::rpc {
namespace {

using ::verger::grpc::Status;
namespace groups = event_store::client::persistent_subscriptions;

constexpr const char* kNoConnectionName = "<unknown>";

/// One call; held by its coroutines.
struct GroupCall {
  NodeCall at;
  persistent::GroupKey key;
  bool ids_as_text = false;
  /// nullptr once the call has ended.
  std::shared_ptr<GroupReader> reader{};
};

/// Event and link carry the position of the record that is delivered.
groups::ReadResp message_of(const GroupReader::Delivery& delivery, bool ids_as_text) {
  groups::ReadResp response;
  auto& out = *response.mutable_event();
  const auto& event = *delivery.event;
  const auto& record = event.record;
  if (record.commit_position.value() < 0) {
    out.mutable_no_position();
  } else {
    out.set_commit_position(static_cast<std::uint64_t>(record.commit_position.value()));
  }
  out.set_retry_count(delivery.retry_count);
  if (!event.is_link) {
    write_event(record, ids_as_text, *out.mutable_event());
    return response;
  }
  write_event(record, ids_as_text, *out.mutable_link());
  if (event.target) {
    write_event(*event.target, ids_as_text, *out.mutable_event());
    out.mutable_event()->set_prepare_position(out.link().prepare_position());
    out.mutable_event()->set_commit_position(out.link().commit_position());
  }
  return response;
}

/// nullopt: one of them is no id.
template <class Answer>
std::optional<std::vector<Uuid>> ids_of(const Answer& answer) {
  std::vector<Uuid> out;
  for (const auto& id : answer.ids()) {
    const auto parsed = parse_uuid(id);
    if (!parsed) {
      return std::nullopt;
    }
    out.push_back(*parsed);
  }
  return out;
}

persistent::NackAction action_of(groups::ReadReq::Nack::Action action) {
  switch (action) {
    case groups::ReadReq::Nack::Park:
      return persistent::NackAction::kPark;
    case groups::ReadReq::Nack::Retry:
      return persistent::NackAction::kRetry;
    case groups::ReadReq::Nack::Skip:
      return persistent::NackAction::kSkip;
    case groups::ReadReq::Nack::Stop:
      return persistent::NackAction::kStop;
    default:
      return persistent::NackAction::kUnknown;
  }
}

/// The client's answers, until it sends no more; what is none of them ends this, as in the server,
/// and not the call.
net::awaitable<void> take_answers(std::shared_ptr<GroupCall> self) {
  while (true) {
    const auto request = co_await self->at.call->next<groups::ReadReq>();
    if (!request || !*request || self->reader == nullptr) {
      co_return;
    }
    if ((*request)->has_ack()) {
      const auto ids = ids_of((*request)->ack());
      if (!ids) {
        co_return;
      }
      self->reader->acknowledge(*ids);
    } else if ((*request)->has_nack()) {
      const auto& nack = (*request)->nack();
      const auto ids = ids_of(nack);
      if (!ids) {
        co_return;
      }
      self->reader->not_acknowledge(*ids, action_of(nack.action()), nack.reason());
    } else {
      co_return;
    }
  }
}

/// Sends what the group delivers, until the client goes or the group does.
net::awaitable<Status> send_messages(std::shared_ptr<GroupCall> self) {
  const auto call = self->at.call;
  const auto reader = self->reader;
  groups::ReadResp confirmation;
  confirmation.mutable_subscription_confirmation()->set_subscription_id(self->key.id());
  if (!co_await call->write(confirmation)) {
    co_return grpc::client_gone();
  }
  self->at.core->spawn(take_answers(self));
  call->on_cancel([weak = std::weak_ptr(reader)] {
    if (const auto alive = weak.lock()) {
      alive->wake();
    }
  });
  while (!call->cancelled()) {
    if (const auto delivery = reader->next()) {
      if (!co_await call->write(message_of(*delivery, self->ids_as_text))) {
        break;
      }
    } else if (reader->dropped()) {
      co_return group_dropped(self->key);
    } else {
      co_await reader->wait();
    }
  }
  co_return grpc::client_gone();
}

}  // namespace

net::awaitable<Status> read_group(NodeCall at) {
  const auto request = co_await at.call->next<groups::ReadReq>();
  if (!request) {
    co_return request.error();
  }
  if (!*request) {
    co_return Status{};
  }
  const auto& options = (*request)->options();
  const auto key = group_key(options);
  if (!(*request)->has_options() || !options.has_uuid_option() || !key) {
    co_return grpc::handler_failed();
  }
  if (!satisfies(at.caller, Need::kUser) ||
      !may(*at.core, at.caller, key->stream, StreamAction::kRead)) {
    co_return access_denied();
  }
  if (auto elsewhere = groups_elsewhere(*at.core)) {
    co_return *std::move(elsewhere);
  }
  const auto name = at.call->head().headers.get("connection-name");
  const auto call = std::make_shared<GroupCall>(GroupCall{
      .at = at,
      .key = *key,
      .ids_as_text =
          options.uuid_option().content_case() == groups::ReadReq::Options::UUIDOption::kString});
  auto reader = at.core->subscriptions->connect(
      *key, {.user = user_name(at.caller),
             .connection_name = std::string(name.value_or(kNoConnectionName)),
             .slots = std::max(options.buffer_size(), 0)});
  if (!reader) {
    co_return group_status(reader.error(), *key);
  }
  call->reader = *std::move(reader);
  auto status = co_await send_messages(call);
  call->reader->leave();
  call->reader.reset();
  co_return status;
}

}  // namespace verger::node::rpc
