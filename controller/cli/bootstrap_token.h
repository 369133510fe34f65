#pragma once

#include <optional>
#include <string>

#include "nodeagent/http/message.h"

namespace verger::cli {

/// The header and the refusal's members by which a bootstrap token is found
/// (docs/formats/controller-api.md).
inline constexpr const char* kBootstrapNonceHeader = "Verger-Bootstrap-Nonce";

/// The bootstrap token that a controller of this machine asks for with `refusal`, where the file it
/// names is one that only its owner and root can read, and the controller has proved by `nonce`
/// that it knows what is in it: a program that has taken vergerd's port gets to see nothing.
/// nullopt: none, or this user may not read it.
std::optional<std::string> bootstrap_token_for(const http::Response& refusal,
                                               const std::string& nonce);

}  // namespace verger::cli
