#pragma once

#include <functional>
#include <string>

#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "nodeagent/http/message.h"
#include "nodeagent/http/tls.h"

namespace verger::agent {

/// What an agent has once it has enrolled with a controller, in its state directory: identity.pem
/// (its key and certificate, mode 0600) and authority.pem (the one root it trusts).
struct IdentityFiles {
  Path certificate;
  Path authority;
  Path draft;  ///< the key while enrolling, so that a repeated request is the same request

  static IdentityFiles in(const Path& state_directory);
  /// Whether the agent has enrolled.
  [[nodiscard]] bool there() const;
  /// For the server: shows the certificate, trusts the authority alone.
  [[nodiscard]] http::TlsFiles tls() const;
};

/// Renews the certificate of an enrolled agent: answers POST /agent/v1/certificate/request and
/// PUT /agent/v1/certificate itself. Used on the server's executor, behind a guard
/// (controller_guard.h).
class Identity {
 public:
  /// `reload`: makes new connections show what the files hold.
  Identity(IdentityFiles files, std::function<Result<void>()> reload, Log& log)
      : files_(std::move(files)), reload_(std::move(reload)), log_(log) {}
  http::Handler with_renewal(http::Handler inner);

 private:
  http::Response make_request();
  http::Response install(const http::Request& request);

  IdentityFiles files_;
  std::function<Result<void>()> reload_;
  Log& log_;
  std::string pending_key_;  ///< of the newest request; lost at a restart, then requested again
};

}  // namespace verger::agent
