#include "controller/daemon/agents_authority.h"

#include "controller/daemon/agent_renewal.h"
#include "engine/base/directories.h"

namespace verger::controller {

Result<AgentsAuthority> AgentsAuthority::open(const VergerdOptions& options) {
  const Path data = options.data;
  VERGER_RETURN_IF_ERROR(make_directories_durably(posix_file_system(), data));
  const auto file = options.agents_ca();
  auto authority = certificates::Authority::open_or_make(file, system_clock().now());
  if (!authority) {
    const auto& error = authority.error();
    // The file is not what the person who starts vergerd has typed.
    return Error{error.code == Errc::kInvalidArgument ? Errc::kCorruption : error.code,
                 error.message};
  }
  AgentsAuthority out{*std::move(authority), file, data / "agents-client.pem",
                      options.agent_certificate_lifetime()};
  VERGER_TRY(const bool made, out.renew());
  static_cast<void>(made);
  return out;
}

Result<bool> AgentsAuthority::renew() const {
  return renew_own_certificate(authority, own_certificate, lifetime, system_clock().now());
}

Result<bool> AgentsAuthority::renew_api(const VergerdOptions& options) const {
  const auto hosts = options.api_hosts();
  if (hosts.empty()) {
    return false;
  }
  auto renewed = renew_api_certificate(authority, options.api_own_certificate(), hosts, lifetime,
                                       system_clock().now());
  return renewed ? std::move(renewed) : renewed.error().within("--api-names");
}

http::TlsFiles AgentsAuthority::tls() const {
  return {.certificate = own_certificate.string(),
          .private_key = own_certificate.string(),
          .trusted_roots = file.string()};
}

void AgentsAuthority::warn_of_lost_authority(const AgentBook& book, Log& log) const {
  for (const auto& agent : book.agents()) {
    if (agent.authority != authority.fingerprint()) {
      log.error("an agent has enrolled with an authority that no longer exists",
                {{"cluster", agent.cluster},
                 {"node", agent.node},
                 {"do", "restore the file of --agents-ca-file, or enrol the agent again"}});
    }
  }
}

}  // namespace verger::controller
