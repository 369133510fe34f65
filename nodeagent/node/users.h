#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "engine/base/random.h"
#include "engine/streams/event_store.h"
#include "nodeagent/http/message.h"

/// The users of a cluster, in its own streams as the server keeps them (node-interface.md §5.5):
/// `$user-<login>` with `$UserCreated` and `$UserUpdated`, the newest counts; `$users` with one
/// `$User` for each that was ever created; `$users-password-notifications`.
namespace verger::node {

class Core;

inline constexpr std::string_view kAdminsGroup = "$admins";
inline constexpr std::string_view kOpsGroup = "$ops";

/// PBKDF2-HMAC-SHA1 of the UTF-8 password, 1000 rounds: 16 bytes of salt, 20 of hash, in base64.
struct StoredPassword {
  std::string hash{};
  std::string salt{};
};
StoredPassword hash_password(std::string_view password, Random& random);
/// Takes the same time for any password, also for a record without hash.
bool password_matches(const StoredPassword& stored, std::string_view password);

struct User {
  std::string login{};
  std::string full_name{};
  std::vector<std::string> groups{};
  bool disabled = false;
  StoredPassword password{};
  Ticks changed{};  ///< of the newest event, where the user was read
};

/// Data of a `$UserCreated` or `$UserUpdated` event. nullopt: not one.
std::optional<User> parse_user(ByteView json);
std::string user_json(const User& user);

/// A user and the number of the event that says so.
struct FoundUser {
  User user{};
  EventNumber version{-1};
};
/// In what this node has committed. nullopt: no such user, or deleted.
Result<std::optional<FoundUser>> find_user(const streams::Database& database,
                                           std::string_view login);
/// Sorted by login.
Result<std::vector<User>> all_users(const streams::Database& database);

/// How a change ended, by the server's names.
enum class UserError : std::uint8_t {
  kSuccess,
  kNotFound,
  kConflict,
  kUnauthorized,
  kTryAgain,  ///< unknown: it may still come about
  kError,
};

/// Changes of users, on any node. Each is a write that a majority has when it succeeds, and that
/// this node has then seen, unless it is far behind.
net::awaitable<UserError> create_user(std::shared_ptr<Core> core, User user, std::string password);
/// Replaces what is stored for the login.
net::awaitable<UserError> update_user(std::shared_ptr<Core> core, User user, bool new_password);
net::awaitable<UserError> delete_user(std::shared_ptr<Core> core, std::string login);

/// On a leader whose database has no users: creates admin and ops with the configured passwords.
net::awaitable<void> create_default_users(std::shared_ptr<Core> core);

}  // namespace verger::node
