#include "nodeagent/node/authentication.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"
#include "engine/base/secret.h"
#include "nodeagent/http/base64.h"
#include "nodeagent/node/detail/node_context.h"
#include "nodeagent/node/users.h"

namespace verger::node {
namespace {

using http::Response;

constexpr std::size_t kMostVerified = 1000;

Response refused() {
  Response response{.status = 401};
  response.headers.set("WWW-Authenticate", "X-Basic realm=\"ESDB\"");
  return response;
}

Response not_ready() {
  Response response{.status = 503};
  response.headers.set("Retry-After", "5");
  return response;
}

/// The rights that $settings gives to all user streams, or to all system streams, that have none of
/// their own; nothing where it gives none. (Deprecated in the server, but kept.)
std::optional<streams::StreamAcl> common_acl(const NodeContext& context, bool system) {
  constexpr std::string_view kSettings = "$settings";
  const auto last = context.db().last_event_number(kSettings);
  if (!last || *last == kNoStream || *last == kDeletedStream) {
    return std::nullopt;
  }
  const auto slice = context.db().read_backward(kSettings, *last, 1);
  if (!slice || slice->events.empty()) {
    return std::nullopt;
  }
  const auto settings = nlohmann::json::parse(as_text(slice->events.front().data), nullptr, false);
  const char* name = system ? "$systemStreamAcl" : "$userStreamAcl";
  if (!settings.is_object() || !settings.contains(name) || !settings[name].is_object()) {
    return std::nullopt;
  }
  const auto as_metadata = nlohmann::json({{"$acl", settings[name]}}).dump();
  return streams::parse_metadata(as_bytes(as_metadata), 1).acl;
}

const std::optional<std::vector<std::string>>& roles_for(const streams::StreamAcl& acl,
                                                         StreamAction action) {
  switch (action) {
    case StreamAction::kRead:
      return acl.read;
    case StreamAction::kWrite:
      return acl.write;
    case StreamAction::kDelete:
      return acl.remove;
    case StreamAction::kReadMetadata:
      return acl.metadata_read;
    case StreamAction::kWriteMetadata:
      break;
  }
  return acl.metadata_write;
}

}  // namespace

bool Identity::in(std::string_view role) const {
  return kind == Kind::kSystem || login == role || std::ranges::find(groups, role) != groups.end();
}

bool Identity::is_admin() const { return in(kAdminsGroup); }
bool Identity::is_operator() const { return in(kOpsGroup) || is_admin(); }

Authenticator::Authenticator(const NodeContext& context) : context_(context) {
  for (int i = 0; i < 4 && !context.options.insecure; ++i) {
    key_ += fmt::format("{:016x}", context.env.random.next());
  }
}

std::string Authenticator::digest_of(std::string_view login, std::string_view password) const {
  // The key and the first length make the parts unambiguous; it never leaves this process.
  Sha256 sum;
  sum.update(as_bytes(fmt::format("{}{:08}{}", key_, login.size(), login)));
  sum.update(as_bytes(password));
  const auto bytes = sum.finish();
  return std::string(as_text(bytes));
}

std::expected<Identity, Response> Authenticator::identify(const http::Request& request) {
  if (context_.options.insecure) {
    return Identity{.kind = Identity::Kind::kSystem, .login = "system"};
  }
  if (const auto header = request.headers.get("Authorization")) {
    const auto space = header->find(' ');
    // Its name is compared with case; without credentials behind it the server fails.
    if (header->substr(0, space) == "Basic") {
      const auto decoded = space == std::string_view::npos
                               ? std::nullopt
                               : http::base64_decode(header->substr(space + 1));
      if (!decoded) {
        return std::unexpected(Response{.status = 500});
      }
      const auto colon = decoded->find(':');
      if (colon != std::string::npos) {
        return verify(decoded->substr(0, colon), decoded->substr(colon + 1));
      }
    }
  }
  // Who may open the socket is the business of its mode.
  if (request.peer.certificate_is_node || request.peer.is_local_socket) {
    return Identity{.kind = Identity::Kind::kSystem, .login = "system"};
  }
  return Identity{};
}

std::expected<Identity, Response> Authenticator::verify(const std::string& login,
                                                        const std::string& password) {
  if (!context_.serving()) {
    return std::unexpected(not_ready());
  }
  const auto version = context_.db().last_event_number("$user-" + login);
  const auto metadata = context_.db().metadata("$user-" + login);
  if (!version || !metadata) {
    context_.env.log.error(
        "a user cannot be read",
        {{"reason", version ? metadata.error().message : version.error().message}});
    return std::unexpected(not_ready());
  }
  const auto digest = digest_of(login, password);
  const auto known = verified_.find(login);
  if (known != verified_.end() && known->second.version == *version &&
      known->second.metadata == metadata->number &&
      equal_in_constant_time(known->second.digest, digest)) {
    return known->second.identity;
  }
  const auto found = find_user(context_.db(), login);
  if (!found) {
    context_.env.log.error("a user cannot be read", {{"reason", found.error().message}});
    return std::unexpected(not_ready());
  }
  if (!*found) {
    const auto any = context_.db().last_event_number("$users");
    if (!any || *any == kNoStream) {
      return std::unexpected(not_ready());  // still to be created, or not yet here
    }
  }
  const User nobody;
  const auto& user = *found ? (*found)->user : nobody;
  const bool matches = password_matches(user.password, password);
  if (!matches || user.disabled) {
    return std::unexpected(refused());
  }
  Identity identity{.kind = Identity::Kind::kUser,
                    .login = user.login,
                    .full_name = user.full_name,
                    .groups = user.groups};
  if (verified_.size() >= kMostVerified) {
    verified_.clear();
  }
  verified_[login] = {*version, metadata->number, digest, identity};
  return identity;
}

bool satisfies(const Identity& identity, Need need) {
  switch (need) {
    case Need::kNobody:
      return true;
    case Need::kUser:
      return identity.kind != Identity::Kind::kAnonymous;
    case Need::kOperator:
      return identity.kind != Identity::Kind::kAnonymous && identity.is_operator();
    case Need::kAdmin:
      return identity.kind != Identity::Kind::kAnonymous && identity.is_admin();
  }
  return false;
}

bool may(const NodeContext& context, const Identity& identity, std::string_view stream,
         StreamAction action) {
  if (identity.kind == Identity::Kind::kAnonymous &&
      !context.options.allow_anonymous_stream_access) {
    return false;
  }
  if (identity.kind != Identity::Kind::kAnonymous && identity.is_admin()) {
    return true;
  }
  // A metastream's events are its stream's metadata.
  while (stream.starts_with("$$")) {
    stream.remove_prefix(2);
    action = action == StreamAction::kRead || action == StreamAction::kReadMetadata
                 ? StreamAction::kReadMetadata
                 : StreamAction::kWriteMetadata;
  }
  const auto metadata = context.db().metadata(stream);
  if (!metadata) {
    context.env.log.error("a stream's rights cannot be read",
                          {{"stream", std::string(stream)}, {"reason", metadata.error().message}});
    return false;
  }
  const auto allows = [&](const std::vector<std::string>& roles) {
    return std::ranges::any_of(
        roles, [&](const std::string& role) { return role == "$all" || identity.in(role); });
  };
  if (metadata->acl) {
    if (const auto& roles = roles_for(*metadata->acl, action)) {
      return allows(*roles);
    }
  }
  const bool system = stream.starts_with('$');
  if (const auto common = common_acl(context, system)) {
    if (const auto& roles = roles_for(*common, action)) {
      return allows(*roles);
    }
  }
  return !system;
}

Response not_allowed() { return Response{.status = 401}; }

}  // namespace verger::node
