#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.h"
#include "nodeagent/http/message.h"

namespace verger::node {

class NodeContext;

/// The caller.
struct Identity {
  enum class Kind : std::uint8_t {
    kAnonymous,
    kUser,
    kSystem,  ///< every caller in insecure mode; another node by its certificate; one
              ///< that comes by the Unix socket
  };
  Kind kind = Kind::kAnonymous;
  std::string login{};
  std::string full_name{};
  std::vector<std::string> groups{};

  [[nodiscard]] bool in(std::string_view role) const;
  [[nodiscard]] bool is_admin() const;
  /// In `$ops` or `$admins`.
  [[nodiscard]] bool is_operator() const;
};

/// HTTP Basic against the users in the database (node-interface.md §1.2). What was verified is
/// remembered until the user's stream moves; passwords are not kept, only their keyed digests.
class Authenticator {
 public:
  explicit Authenticator(const NodeContext& context);

  /// The error is the answer: 401 with challenge, 500 for broken base64, 503 while there are no
  /// users yet.
  std::expected<Identity, http::Response> identify(const http::Request& request);

 private:
  struct Verified {
    EventNumber version;
    EventNumber metadata;  ///< a deleted user's stream keeps its events, and gets metadata
    std::string digest;
    Identity identity;
  };
  [[nodiscard]] std::string digest_of(std::string_view login, std::string_view password) const;
  std::expected<Identity, http::Response> verify(const std::string& login,
                                                 const std::string& password);

  const NodeContext& context_;
  std::string key_;
  std::map<std::string, Verified> verified_;
};

/// What a route demands of its caller (node-interface.md §1.3).
enum class Need : std::uint8_t { kNobody, kUser, kOperator, kAdmin };
bool satisfies(const Identity& identity, Need need);

enum class StreamAction : std::uint8_t { kRead, kWrite, kDelete, kReadMetadata, kWriteMetadata };
/// By the stream's ACL; where that says nothing: every known user, on `$` streams admins.
bool may(const NodeContext& context, const Identity& identity, std::string_view stream,
         StreamAction action);

/// 401 without challenge: known, but not allowed; or anonymous.
http::Response not_allowed();

}  // namespace verger::node
