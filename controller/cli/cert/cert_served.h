#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "engine/base/result.h"

namespace verger::cli {

/// The chain that a node shows to a new TLS connection now, PEM, leaf first; trusted or not.
/// Errors: kInvalidArgument: no https URL; kUnavailable.
Result<std::string> served_by(const std::string& url);

/// What else a node says of itself, as far as it answers without a password.
struct NodeAnswers {
  std::string version{};
  std::vector<std::string> addresses{};  ///< that gossip advertises for it, without ports
  std::chrono::seconds clock_ahead{};    ///< of this machine's; whole seconds
  std::vector<std::string> problems{};   ///< what could not be found out, and why
};
/// `roots`: a file or a directory; those that its certificate is trusted by.
NodeAnswers ask_node(const std::string& url, const std::string& roots);

/// Of a member's gossip: all addresses under which it lists the node at `host` and `port`.
std::vector<std::string> advertised_in(const std::string& gossip, const std::string& host,
                                       std::uint16_t port);

}  // namespace verger::cli
