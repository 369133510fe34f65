#include "nodeagent/node/users.h"

#include <algorithm>
#include <array>
#include <openssl/evp.h>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/base/secret.h"
#include "nodeagent/http/base64.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/write_service.h"

namespace verger::node {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kSaltSize = 16;
constexpr std::size_t kHashSize = 20;
constexpr int kRounds = 1000;
constexpr std::string_view kUsers = "$users";
constexpr std::string_view kNotifications = "$users-password-notifications";

std::string stream_of(std::string_view login) { return "$user-" + std::string(login); }

std::string derive(std::string_view password, std::string_view salt) {
  std::array<unsigned char, kHashSize> out{};
  std::array<unsigned char, kSaltSize> bytes{};
  std::copy_n(salt.begin(), std::min(salt.size(), bytes.size()), bytes.begin());
  if (PKCS5_PBKDF2_HMAC_SHA1(password.data(), static_cast<int>(password.size()), bytes.data(),
                             static_cast<int>(bytes.size()), kRounds, static_cast<int>(out.size()),
                             out.data()) != 1) {
    return {};
  }
  return {out.begin(), out.end()};
}

streams::NewEvent event_of(Core& core, std::string type, std::string_view data, bool is_json) {
  streams::NewEvent event;
  event.id = core.env.random.uuid();
  event.type = std::move(type);
  event.is_json = is_json;
  const auto bytes = as_bytes(data);
  event.data.assign(bytes.begin(), bytes.end());
  return event;
}

UserError error_of(const WriteReply& reply) {
  switch (reply.status) {
    case WriteStatus::kDone:
      return UserError::kSuccess;
    case WriteStatus::kWrongVersion:
      return UserError::kConflict;
    case WriteStatus::kDeleted:
      return UserError::kNotFound;
    case WriteStatus::kNotReady:
    case WriteStatus::kTimeout:
      return UserError::kTryAgain;
    case WriteStatus::kInvalid:
      break;
  }
  return UserError::kError;
}

/// Writes, and waits until this node, which may have forwarded it, sees what was written.
net::awaitable<UserError> write_and_see(std::shared_ptr<Core> core, WriteRequest request) {
  const auto until = core->now() + core->options.timings.write_timeout;
  const auto reply = co_await write(core, std::move(request));
  while (reply.status == WriteStatus::kDone && core->db().committed() <= reply.position &&
         core->now() < until && core->serving()) {
    co_await core->env.timers.sleep_for(core->options.timings.tick);
  }
  co_return error_of(reply);
}

net::awaitable<UserError> append_one(std::shared_ptr<Core> core, std::string stream,
                                     std::int64_t expected, streams::NewEvent event) {
  WriteRequest request;
  request.stream = std::move(stream);
  request.expected_version = expected;
  request.events.push_back(std::move(event));
  co_return co_await write_and_see(core, std::move(request));
}

}  // namespace

StoredPassword hash_password(std::string_view password, Random& random) {
  std::string salt;
  while (salt.size() < kSaltSize) {
    auto chance = random.next();
    for (std::size_t i = 0; i < sizeof chance; ++i, chance >>= 8U) {
      salt.push_back(static_cast<char>(chance & 0xffU));
    }
  }
  return {http::base64_encode(derive(password, salt)), http::base64_encode(salt)};
}

bool password_matches(const StoredPassword& stored, std::string_view password) {
  const auto salt = http::base64_decode(stored.salt);
  const auto hash = http::base64_decode(stored.hash);
  const auto derived = derive(password, salt ? *salt : std::string());
  return salt && hash && hash->size() == kHashSize && equal_in_constant_time(*hash, derived);
}

std::optional<User> parse_user(ByteView bytes) {
  const auto json = ordered_json::parse(as_text(bytes), nullptr, false);
  if (!json.is_object()) {
    return std::nullopt;
  }
  try {
    User user;
    user.login = json.at("loginName").get<std::string>();
    user.password.hash = json.at("hash").get<std::string>();
    user.password.salt = json.at("salt").get<std::string>();
    const auto text = [&](const char* name) {
      const auto found = json.find(name);
      return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    user.full_name = text("fullName");
    if (const auto groups = json.find("groups"); groups != json.end() && groups->is_array()) {
      user.groups = groups->get<std::vector<std::string>>();
    }
    if (const auto disabled = json.find("disabled");
        disabled != json.end() && disabled->is_boolean()) {
      user.disabled = disabled->get<bool>();
    }
    return user;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

std::string user_json(const User& user) {
  ordered_json json = {{"loginName", user.login},
                       {"fullName", user.full_name},
                       {"salt", user.password.salt},
                       {"hash", user.password.hash}};
  if (user.disabled) {
    json["disabled"] = true;
  }
  json["groups"] = user.groups;
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

Result<std::optional<FoundUser>> find_user(const streams::Database& database,
                                           std::string_view login) {
  VERGER_TRY(const auto slice, database.read_backward(stream_of(login), kDeletedStream, 1));
  if (slice.status != streams::StreamStatus::kSuccess || slice.events.empty()) {
    return std::optional<FoundUser>();
  }
  const auto& event = slice.events.front();
  auto user = parse_user(event.data);
  if (!user || user->login != login) {
    return Error{Errc::kCorruption,
                 fmt::format("event {} of stream $user-{} does not describe that user",
                             event.number, login)};
  }
  user->changed = event.timestamp;
  return std::optional(FoundUser{*std::move(user), event.number});
}

Result<std::vector<User>> all_users(const streams::Database& database) {
  constexpr std::size_t kPage = 500;
  std::set<std::string> logins;
  for (EventNumber from(0);;) {
    VERGER_TRY(const auto slice, database.read_forward(kUsers, from, kPage));
    for (const auto& event : slice.events) {
      logins.emplace(as_text(event.data));
    }
    if (slice.status != streams::StreamStatus::kSuccess || slice.end_of_stream) {
      break;
    }
    from = slice.next;
  }
  std::vector<User> users;
  for (const auto& login : logins) {
    VERGER_TRY(auto found, find_user(database, login));
    if (found) {
      users.push_back(std::move(found->user));
    }
  }
  return users;
}

net::awaitable<UserError> create_user(std::shared_ptr<Core> core, User user, std::string password) {
  const auto existing = find_user(core->db(), user.login);
  if (!existing) {
    co_return UserError::kError;
  }
  if (*existing) {
    const auto& known = (*existing)->user;
    // Created again with all the same: most likely the answer to the first request was lost.
    const bool same = known.full_name == user.full_name && known.groups == user.groups &&
                      password_matches(known.password, password);
    co_return same ? UserError::kSuccess : UserError::kConflict;
  }
  user.password = hash_password(password, core->env.random);
  const auto created = co_await append_one(core, stream_of(user.login), streams::kExpectNoStream,
                                           event_of(*core, "$UserCreated", user_json(user), true));
  if (created != UserError::kSuccess) {
    co_return created;
  }
  co_return co_await append_one(core, std::string(kUsers), streams::kExpectAny,
                                event_of(*core, "$User", user.login, false));
}

net::awaitable<UserError> update_user(std::shared_ptr<Core> core, User user, bool new_password) {
  const auto existing = find_user(core->db(), user.login);
  if (!existing) {
    co_return UserError::kError;
  }
  if (!*existing) {
    co_return UserError::kNotFound;
  }
  const auto updated =
      co_await append_one(core, stream_of(user.login), (*existing)->version.value(),
                          event_of(*core, "$UserUpdated", user_json(user), true));
  if (updated != UserError::kSuccess || !new_password) {
    co_return updated;
  }
  const auto notice = ordered_json({{"loginName", user.login}}).dump(2);
  co_return co_await append_one(core, std::string(kNotifications), streams::kExpectAny,
                                event_of(*core, "$PasswordChanged", notice, true));
}

net::awaitable<UserError> delete_user(std::shared_ptr<Core> core, std::string login) {
  const auto existing = find_user(core->db(), login);
  if (!existing) {
    co_return UserError::kError;
  }
  if (!*existing) {
    co_return UserError::kNotFound;
  }
  WriteRequest request;
  request.kind = WriteRequest::Kind::kSoftDelete;
  request.stream = stream_of(login);
  request.expected_version = (*existing)->version.value();
  co_return co_await write_and_see(core, std::move(request));
}

net::awaitable<void> create_default_users(std::shared_ptr<Core> core) {
  const auto known = core->db().last_event_number("$user-admin");
  if (!known || *known != kNoStream) {
    co_return;
  }
  struct Default {
    const char* login;
    const char* full_name;
    std::string_view group;
    const std::string& password;
  };
  const std::array defaults = {
      Default{"admin", "Event Store Administrator", kAdminsGroup,
              core->options.default_admin_password},
      Default{"ops", "Event Store Operations", kOpsGroup, core->options.default_ops_password}};
  WriteRequest metadata;
  metadata.kind = WriteRequest::Kind::kMetadata;
  metadata.stream = kNotifications;
  metadata.events.push_back(event_of(*core, "$metadata", "{\n  \"$maxAge\": 3600\n}", true));
  static_cast<void>(co_await write(core, std::move(metadata)));
  for (const auto& one : defaults) {
    if (one.password.empty()) {
      core->env.log.error(
          "a default user has no password and was not created: give one in the environment "
          "(VERGER_NODE_DEFAULT_ADMIN_PASSWORD, VERGER_NODE_DEFAULT_OPS_PASSWORD) and start again",
          {{"user", one.login}});
      co_return;
    }
    User user{.login = one.login, .full_name = one.full_name};
    user.groups.emplace_back(one.group);
    const auto created = co_await create_user(core, std::move(user), one.password);
    if (created != UserError::kSuccess && created != UserError::kConflict) {
      core->env.log.error("a default user was not created", {{"user", one.login}});
      co_return;  // the next leader tries again
    }
    if (one.password == "changeit") {
      core->env.log.warning("a user has the well-known default password: change it",
                            {{"user", one.login}});
    }
  }
}

}  // namespace verger::node
