#include "nodeagent/node/grpc/service_base.h"

#include <algorithm>

#include "engine/base/utf8.h"
#include "nodeagent/node/detail/lenient_words.h"

namespace verger::node::rpc {

using ::verger::grpc::Code;
using ::verger::grpc::Status;

void Registry::add(const std::string& service, const std::string& method, NodeMethod handler,
                   std::size_t most_bytes) const {
  add_whole(std::string(kClientPackage) + service, method, std::move(handler), most_bytes);
}

void Registry::add_whole(const std::string& service, const std::string& method, NodeMethod handler,
                         std::size_t most_bytes) const {
  table->add(
      service, method,
      [weak = core, handler = std::move(handler)](
          std::shared_ptr<grpc::ServerCall> call) -> net::awaitable<Status> {
        auto node = weak.lock();
        const auto at_once = [](Status status) -> net::awaitable<Status> { co_return status; };
        if (!node || !node->serving()) {
          return at_once(not_ready());
        }
        auto caller = node->authenticator->identify(call->head());
        if (!caller) {
          switch (caller.error().status) {
            case 401:
              return at_once({.code = Code::kUnauthenticated, .message = "Unauthenticated"});
            case 503:
              return at_once({.code = Code::kUnavailable,
                              .message = "Server not ready",
                              .metadata = {{"grpc-retry-pushback-ms", "-1"}}});
            default:
              return at_once({.http_status = caller.error().status});
          }
        }
        return handler(NodeCall{std::move(node), std::move(call), *std::move(caller)});
      },
      most_bytes);
}

NodeMethod only_for(Need need, NodeMethod method) {
  return [need, method = std::move(method)](NodeCall at) {
    if (!satisfies(at.caller, need)) {
      return [](Status status) -> net::awaitable<Status> { co_return status; }(access_denied());
    }
    return method(std::move(at));
  };
}

Status access_denied() {
  return {.code = Code::kPermissionDenied,
          .message = "Access Denied",
          .metadata = {{"exception", "access-denied"}}};
}

Status not_ready() { return {.code = Code::kUnavailable, .message = "Server Is Not Ready"}; }

Status stream_deleted(std::string_view stream) {
  return {.code = Code::kFailedPrecondition,
          .message = fmt::format("Event stream '{}' is deleted.", stream),
          .metadata = {{"exception", "stream-deleted"}, {"stream-name", std::string(stream)}}};
}

Status invalid_argument(std::string message) {
  return {.code = Code::kInvalidArgument, .message = std::move(message)};
}

Status no_case(std::string_view type) {
  return invalid_argument(fmt::format("'None' is not a valid EventStore.Client.Streams.{}", type));
}

std::optional<Status> not_the_leader(Core& core, const http::Request& head) {
  const auto wanted = head.headers.get("requires-leader");
  const auto state = core.election->state();
  if (!wanted || !same_word(*wanted, "true") || state == api::NodeState::kLeader ||
      state == api::NodeState::kResigningLeader) {
    return std::nullopt;
  }
  return leader_is_elsewhere(core);
}

Status leader_is_elsewhere(Core& core) {
  // The last one is named for as long as no other is known, dead or not.
  const auto leader =
      core.election->leader() ? core.election->leader() : core.election->last_leader();
  const auto* member = leader && *leader != core.self ? core.gossip->find(*leader) : nullptr;
  if (member == nullptr) {
    return not_ready();
  }
  return {.code = Code::kNotFound,
          .message = "Leader info available",
          .metadata = {{"exception", "not-leader"},
                       {"leader-endpoint-host", member->http.host},
                       {"leader-endpoint-port", std::to_string(member->http.port)}}};
}

std::optional<std::string> stream_name(bool has_identifier,
                                       const event_store::client::StreamIdentifier& identifier) {
  if (!has_identifier || identifier.stream_name().empty()) {
    return std::nullopt;
  }
  constexpr std::uint32_t kReplacement = 0xFFFD;
  std::string name;
  std::string_view rest = identifier.stream_name();
  while (!rest.empty()) {
    const auto length = utf8_length(rest);
    if (length == 0) {
      append_utf8(name, kReplacement);
    } else {
      name += rest.substr(0, length);
    }
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return name;
}

std::optional<Uuid> parse_uuid(const event_store::client::UUID& uuid) {
  if (uuid.value_case() == event_store::client::UUID::kString) {
    return parse_guid(uuid.string());
  }
  if (uuid.value_case() != event_store::client::UUID::kStructured) {
    return std::nullopt;
  }
  const auto high = static_cast<std::uint64_t>(uuid.structured().most_significant_bits());
  const auto low = static_cast<std::uint64_t>(uuid.structured().least_significant_bits());
  const auto digits = fmt::format("{:016x}{:016x}", high, low);
  return parse_guid(digits);
}

void write_uuid(const Uuid& uuid, bool as_text, event_store::client::UUID& into) {
  auto text = uuid.to_string();
  if (as_text) {
    into.set_string(std::move(text));
    return;
  }
  std::erase(text, '-');
  constexpr std::size_t kHalf = 16;
  constexpr int kHex = 16;
  auto& structured = *into.mutable_structured();
  structured.set_most_significant_bits(
      static_cast<std::int64_t>(std::stoull(text.substr(0, kHalf), nullptr, kHex)));
  structured.set_least_significant_bits(
      static_cast<std::int64_t>(std::stoull(text.substr(kHalf), nullptr, kHex)));
}

}  // namespace verger::node::rpc
