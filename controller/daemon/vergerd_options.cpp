#include "controller/daemon/vergerd_options.h"

#include "nodeagent/http/loopback.h"

namespace verger::controller {

void add_options(settings::Settings& all, VergerdOptions& options) {
  all.add("data", options.data, "Directory of the journal; made when missing");
  all.add("credentials", options.credentials,
          "Directory of credential files (default: DATA/credentials)");
  all.add("host", options.host,
          "Address to listen on; without --api-certificate-file loopback only");
  all.add("port", options.port, "Port of the API; 0 lets the system choose");
  all.add("port-file", options.port_file, "File to write the chosen port to");
  all.add("json-log", options.json_log, "Log lines as JSON");
  all.add("log-level", options.log_level, "The least that is logged",
          {.choices = {"debug", "info", "warning", "error"}});
  all.add("end-after-seconds", options.end_after_seconds,
          "End by itself after this long (0: never)", {.hidden = true});
  const settings::Traits tls{.group = "Certificates"};
  all.add(
      "ca", options.tls.trusted_roots,
      "Trusted roots of nodes and agents: a file, or a directory of .crt .cert .cer .pem .der; a "
      "cluster may name its own (verger cluster add --ca)",
      {.group = "Certificates", .aliases = {"trusted-roots"}});
  all.add("certificate-file", options.tls.certificate,
          "vergerd's own certificate for agents that have one of another authority", tls);
  all.add("certificate-private-key-file", options.tls.private_key, "Its key", tls);
  all.add("api-certificate-file", options.api_tls.certificate,
          "Certificate of the API, its intermediates behind it (PEM): the API is https", tls);
  all.add("api-certificate-private-key-file", options.api_tls.private_key, "Its key", tls);
  all.add(
      "agents-ca-file", options.agents_ca_file,
      "Key and root, in one file of mode 0600, of the authority that issues the certificates of "
      "agents that enrol; made at the first start, never replaced (default: DATA/agents-ca.pem)",
      tls);
  all.add("agent-certificate-days", options.agent_certificate_days,
          "How long such a certificate is valid; renewed when two thirds are over",
          {.group = "Certificates", .unit = "d"});
  all.add("agent-certificate-seconds", options.agent_certificate_seconds,
          "The same in seconds, for tests (0: the days count)",
          {.group = "Certificates", .unit = "s", .hidden = true});
  const settings::Traits times{.group = "Times", .unit = "ms"};
  all.add("poll-interval-ms", options.poll_interval_ms,
          "Between two looks at a node that acts, or at a closed gate", times);
  all.add("request-deadline-ms", options.request_deadline_ms, "For each request to a node or agent",
          times);
  all.add("permit-valid-ms", options.permit_valid_ms,
          "How long an agent keeps a permit without hearing again", times);
  all.add("leader-hold-ms", options.leader_hold_ms,
          "How long a new leader must hold before a move counts", times);
  all.add("election-settle-ms", options.election_settle_ms,
          "No resignation sooner than this after an election", times);
  all.add("disk-reserve-mib", options.disk_reserve_mib,
          "Disk of a node that must stay free beyond its largest rewrite",
          {.group = "Limits", .unit = "MiB"});
  all.set_footer(
      "Example: vergerd --data /var/lib/verger --ca /etc/verger/ca\n"
      "Annotated file: examples/vergerd.yaml");
}

planner::Policy VergerdOptions::policy() const {
  planner::Policy out;
  out.scavenge.leader_hold_ms = leader_hold_ms;
  out.scavenge.election_settle_ms = election_settle_ms;
  out.scavenge.disk_reserve_bytes = disk_reserve_mib << 20U;
  return out;
}

Result<void> check_options(const VergerdOptions& options) {
  const auto wrong = [](std::string text) {
    return Error{Errc::kInvalidArgument, std::move(text)};
  };
  if (options.data.empty()) {
    return wrong("--data is missing: a directory for the journal");
  }
  if (options.tls.certificate.empty() != options.tls.private_key.empty()) {
    return wrong(
        "--certificate-file and --certificate-private-key-file belong together: give both or none");
  }
  if (options.api_tls.certificate.empty() != options.api_tls.private_key.empty()) {
    return wrong(
        "--api-certificate-file and --api-certificate-private-key-file belong together: give both "
        "or none");
  }
  if (options.api_tls.certificate.empty() && !http::is_loopback(options.host)) {
    return wrong("--host " + options.host +
                 ": plain HTTP is for this machine alone; to listen on other addresses give "
                 "--api-certificate-file and --api-certificate-private-key-file");
  }
  if (options.agent_certificate_days < 1) {
    return wrong("--agent-certificate-days must be at least 1");
  }
  return {};
}

}  // namespace verger::controller
