#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "engine/base/file_system.h"
#include "nodeagent/external/file_access.h"
#include "nodeagent/http/handshake.h"

namespace verger::agent {

/// Where a node's certificates are, as the agent is configured. Paths may be empty: not known.
struct CertificatePlaces {
  Path certificate{};
  Path private_key{};
  std::string private_key_password{};  ///< of an encrypted key
  Path trusted_roots{};                ///< a directory, or a file with all of them
  /// As the node is configured; nullopt: the agent does not know it.
  std::optional<std::string> reserved_common_name{};
  bool loads_ec_keys = false;  ///< an embedded node
  /// Files with certificates of users, or directories with such files; only their ends are shown.
  std::vector<Path> users{};
};

/// The user that the server runs as.
struct ServerUser {
  std::uint32_t id = 0;
  std::vector<std::uint32_t> groups{};
};

/// What the agent needs of its machine to look at and change its node's certificates. The functions
/// are no longer called once the agent is destroyed.
struct CertificateAccess {
  CertificatePlaces places{};
  external::FileAccess* access = nullptr;  ///< outlives the agent
  /// A new connection of its own (http::shake_hands).
  std::function<net::awaitable<Result<http::Handshake>>(
      http::Endpoint with, http::ClientMaterial material, std::string target,
      std::chrono::milliseconds deadline)>
      shake_hands{};
  /// Sends SIGHUP to the server. Errors: kUnavailable: it does not run; kRefused. Empty: it cannot.
  std::function<net::awaitable<Result<void>>()> signal_server{};
  /// Why it cannot; empty: it can.
  std::string signal_problem{};
  /// nullopt: not known.
  std::optional<ServerUser> server_user{};
  /// The agent's own connections use the certificates as they are on disk from now on. May be
  /// empty.
  std::function<void()> reload_own{};
};

}  // namespace verger::agent
