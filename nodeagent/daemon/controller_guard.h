#pragma once

#include <string>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "nodeagent/http/message.h"

namespace verger::agent {

/// Who may act as the controller of an agent. All that the agent answers is behind one of these.

/// Over https: who shows a certificate of the agent's trusted roots (TLS saw to that) with `name`
/// as its common name or among its alternative names. All others get 403 `wrong_peer`. `log`
/// outlives the handler.
http::Handler only_the_controller_named(std::string name, http::Handler inner, Log& log);

/// Over plain HTTP, on loopback: only requests signed with `token` (http::SignatureCheck); the
/// answers are signed, too. Others get 401 `unauthorized`. `clock` and `log` outlive the handler.
/// One executor.
http::Handler only_with_the_token(std::string token, http::Handler inner, Clock& clock, Log& log);

/// The first line of a controller token file. Errors: kRefused (others may read it), kNotFound
/// (with how one is made), kInvalidArgument (too short to be a secret), kIo.
Result<std::string> read_controller_token(const Path& file);

}  // namespace verger::agent
