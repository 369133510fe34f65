#pragma once

#include <chrono>
#include <string>

#include "controller/cluster/agent_book.h"
#include "controller/daemon/vergerd_options.h"
#include "nodeagent/certificates/authority.h"

namespace verger::controller {

/// The authority of vergerd's agents, and vergerd's own certificate of it.
struct AgentsAuthority {
  certificates::Authority authority;
  Path file;  ///< of the authority: its root is read from it, and the key is in it too
  Path own_certificate;
  std::chrono::seconds lifetime;

  /// Makes what is missing. Errors: kRefused (others may read its key), kCorruption (the file is
  /// not an authority's), the disk's.
  static Result<AgentsAuthority> open(const VergerdOptions& options);
  /// True: vergerd's own certificate is a new one.
  [[nodiscard]] Result<bool> renew() const;
  /// The same of the API's, where vergerd makes that, too: see renew_api_certificate.
  [[nodiscard]] Result<bool> renew_api(const VergerdOptions& options) const;
  /// For connections to agents that have enrolled.
  [[nodiscard]] http::TlsFiles tls() const;
  /// Warns of an authority that agents did not enrol with: it would fail without a sign.
  void warn_of_lost_authority(const AgentBook& book, Log& log) const;
};

}  // namespace verger::controller
