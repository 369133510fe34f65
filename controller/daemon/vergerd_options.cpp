#include "controller/daemon/vergerd_options.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "nodeagent/http/loopback.h"

namespace verger::controller {

void add_options(settings::Settings& all, VergerdOptions& options) {
  all.add("data", options.data,
          "Directory of the journal and of the bootstrap token; made when missing");
  all.add("credentials", options.credentials,
          "Directory of credential files (default: DATA/credentials)");
  all.add("host", options.host,
          "Address to listen on; without a certificate of the API loopback only");
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
  all.add("services-ca", options.services_ca,
          "Trusted roots of webhooks and Prometheus servers, such as "
          "/etc/ssl/certs/ca-certificates.crt (default: those of --ca)",
          tls);
  all.add("certificate-file", options.tls.certificate,
          "vergerd's own certificate for agents that have one of another authority", tls);
  all.add("certificate-private-key-file", options.tls.private_key, "Its key", tls);
  all.add(
      "api-names", options.api_names,
      "Names and addresses of the API, commas between: it is https, with a certificate that "
      "vergerd makes and renews itself, issued by the authority of its agents (see vergerd init)",
      tls);
  all.add("api-certificate-file", options.api_tls.certificate,
          "Certificate of the API, its intermediates behind it (PEM): the API is https", tls);
  all.add("api-certificate-private-key-file", options.api_tls.private_key, "Its key", tls);
  all.add(
      "agents-ca-file", options.agents_ca_file,
      "Key and root, in one file of mode 0600, of the authority that issues the certificates of "
      "agents that enrol; made at the first start, never replaced (default: DATA/agents-ca.pem)",
      tls);
  all.add("agents-token-file", options.agents_token_file,
          "File of mode 0600 with the token that requests to agents without TLS, on this machine, "
          "are signed with; made at the first start (default: DATA/agents-token)",
          tls);
  all.add("agent-certificate-days", options.agent_certificate_days,
          "How long such a certificate is valid; renewed when two thirds are over",
          {.group = "Certificates", .unit = "d"});
  all.add("agent-certificate-seconds", options.agent_certificate_seconds,
          "The same in seconds, for tests (0: the days count)",
          {.group = "Certificates", .unit = "s", .hidden = true});
  all.add(
      "authorities-directory", options.authorities_directory,
      "Directory of the authorities that sign nodes' certificates: NAME.crt (with those above it "
      "behind it), NAME.key, NAME.password of an encrypted key; mode 0600 for the last two "
      "(default: DATA/authorities)",
      tls);
  all.add("signing-commands", options.signing_commands,
          "Directory of the programs that may sign nodes' certificates: the request on their "
          "standard input, the certificate on their standard output; without it none is run",
          tls);
  all.add("signing-command-seconds", options.signing_command_seconds,
          "A signing program that runs longer is killed", {.group = "Certificates", .unit = "s"});
  all.add(
      "epoch-above", options.epoch_above,
      "Begin with a greater epoch than this: once, after the journal was lost or restored, where "
      "agents know a newer one and no other vergerd works on their clusters");
  all.add("notification-commands", options.notification_commands,
          "Directory of the programs that notifications may run; without it none is run",
          {.group = "Notifications"});
  all.add("notification-command-seconds", options.notification_command_seconds,
          "A program that runs longer is killed", {.group = "Notifications", .unit = "s"});
  const settings::Traits mail{.group = "Notifications"};
  all.add("smtp-url", options.mail.url,
          "Mail server: smtps://HOST:465, or smtp://HOST:587 with STARTTLS; without it no mail is "
          "sent",
          mail);
  all.add("smtp-from", options.mail.from, "Address that mails come from", mail);
  all.add("smtp-credentials-file", options.mail.credentials,
          "File of mode 0600 with user and password for the mail server, a line each", mail);
  all.add("smtp-ca", options.mail.trusted_roots,
          "Trusted roots of the mail server: a file or a directory (default: those of "
          "--services-ca)",
          mail);
  const settings::Traits pair{.group = "A pair over etcd"};
  all.add("journal-etcd", options.journal_etcd,
          "Keep the journal in etcd, at these URLs (commas between), and share it with another "
          "vergerd: one is active, the other on standby",
          pair);
  all.add("journal-etcd-ca", options.journal_tls.trusted_roots,
          "Trusted roots of etcd: a file or a directory", pair);
  all.add("journal-etcd-certificate-file", options.journal_tls.certificate,
          "vergerd's own certificate for etcd, where that asks for one", pair);
  all.add("journal-etcd-private-key-file", options.journal_tls.private_key, "Its key", pair);
  all.add("journal-etcd-prefix", options.journal_prefix, "All keys begin with it", pair);
  all.add("journal-etcd-lease-seconds", options.journal_lease_seconds,
          "The standby takes over when the active one has sent no sign of life for so long",
          {.group = "A pair over etcd", .unit = "s"});
  all.add("public-url", options.public_url,
          "Where people and the other one reach this API (default: host and port)", pair);
  const settings::Traits hours{.group = "Journal", .unit = "h"};
  const settings::Traits days{.group = "Journal", .unit = "d"};
  all.add("keep-progress-hours", options.keep_progress_hours,
          "How long the journal keeps a step's progress of which there is newer", hours);
  all.add("keep-answers-hours", options.keep_answers_hours,
          "How long it keeps answers to requests with an Idempotency-Key", hours);
  all.add("keep-plans-days", options.keep_plans_days,
          "How long it keeps plans, and due times that newer ones have settled", days);
  all.add("keep-run-details-days", options.keep_run_details_days,
          "How long it keeps each event of a run that has ended; its plan, state and report stay",
          days);
  all.add("keep-runs-days", options.keep_runs_days,
          "How long it keeps runs that have ended; the newest ten of a cluster always", days);
  all.add("keep-runs", options.keep_runs, "How many of them it keeps for a cluster",
          {.group = "Journal"});
  all.add("keep-audit-days", options.keep_audit_days,
          "How long it keeps the audit; what goes is written to DATA/archive first", days);
  all.add("compact-every-minutes", options.compact_every_minutes,
          "Between two compactions of the journal (0: none but by `verger admin compact`)",
          {.group = "Journal", .unit = "min"});
  all.add("observe-every-seconds", options.observe_every_seconds,
          "Between two looks at each cluster for /metrics, whether or not a run is at work",
          {.group = "Times", .unit = "s"});
  const settings::Traits times{.group = "Times", .unit = "ms"};
  all.add("poll-interval-ms", options.poll_interval_ms,
          "Between two looks at a node that acts, or at a closed gate", times);
  all.add("request-deadline-ms", options.request_deadline_ms, "For each request to a node or agent",
          times);
  all.add("permit-valid-ms", options.permit_valid_ms,
          "How long an agent keeps a permit without hearing again", times);
  all.add("leader-hold-ms", options.leader_hold_ms,
          "How long a new leader must hold before a move counts", times);
  all.add("election-settle-ms", options.election_settle_ms, "How long steps wait after an election",
          times);
  all.add("move-settle-ms", options.move_settle_ms,
          "The same after a run's own move of the leader, where that is less", times);
  all.add("disk-reserve-mib", options.disk_reserve_mib,
          "Disk of a node that must stay free beyond its largest rewrite",
          {.group = "Limits", .unit = "MiB"});
  all.set_footer(
      "Example: vergerd --data /var/lib/verger --ca /etc/verger/ca\n"
      "Annotated file: examples/vergerd.yaml");
}

std::vector<std::string> VergerdOptions::api_hosts() const {
  std::vector<std::string> out;
  const auto add = [&out](std::string_view name) {
    if (!name.empty() && std::ranges::find(out, name) == out.end()) {
      out.emplace_back(name);
    }
  };
  for (std::string_view rest = api_names; !rest.empty();) {
    const auto end = rest.find(',');
    auto name = rest.substr(0, end);
    const auto first = name.find_first_not_of(" \t[");
    const auto last = name.find_last_not_of(" \t]");
    add(first == std::string_view::npos ? "" : name.substr(first, last - first + 1));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  if (!out.empty()) {
    for (const std::string_view own : {"localhost", "127.0.0.1", "::1"}) {
      add(own);
    }
  }
  return out;
}

http::TlsFiles VergerdOptions::api_files() const {
  return api_hosts().empty() ? api_tls
                             : http::TlsFiles{.certificate = api_own_certificate().string(),
                                              .private_key = api_own_certificate().string()};
}

std::string VergerdOptions::reached_at() const {
  if (!public_url.empty()) {
    return public_url;
  }
  const auto names = api_hosts();
  return names.empty() || port == 0
             ? std::string()
             : http::Endpoint{.tls = true, .host = names.front(), .port = port}.url();
}

planner::Policy VergerdOptions::policy() const {
  planner::Policy out;
  out.limits.leader_hold_ms = leader_hold_ms;
  out.limits.election_settle_ms = election_settle_ms;
  out.limits.move_settle_ms = move_settle_ms;
  out.gates.disk_reserve_bytes = disk_reserve_mib << 20U;
  return out;
}

RetentionRules VergerdOptions::retention() const {
  RetentionRules out;
  out.progress = std::chrono::hours(keep_progress_hours);
  out.answers = std::chrono::hours(keep_answers_hours);
  out.plans = std::chrono::days(keep_plans_days);
  out.run_details = std::chrono::days(keep_run_details_days);
  out.runs = std::chrono::days(keep_runs_days);
  out.runs_of_cluster = static_cast<std::size_t>(keep_runs);
  out.audit = std::chrono::days(keep_audit_days);
  return out;
}

MailSettings VergerdOptions::mail_settings() const {
  auto out = mail;
  if (!out.url.empty() && out.trusted_roots.empty()) {
    out.trusted_roots = services_ca;
  }
  return out;
}

Result<EtcdOptions> VergerdOptions::etcd() const {
  VERGER_TRY(auto endpoints, parse_etcd_endpoints(journal_etcd));
  return EtcdOptions{
      .endpoints = std::move(endpoints), .tls = journal_tls, .prefix = journal_prefix};
}

namespace {

Result<void> check_pair(const VergerdOptions& options) {
  const auto wrong = [](std::string text) {
    return Error{Errc::kInvalidArgument, std::move(text)};
  };
  const auto etcd = options.etcd();
  if (!etcd) {
    return etcd.error().within("--journal-etcd");
  }
  for (const auto& endpoint : etcd->endpoints) {
    if (!endpoint.tls && !http::is_loopback(endpoint.host)) {
      return wrong("--journal-etcd " + endpoint.url() +
                   ": plain HTTP is for this machine alone; use https and --journal-etcd-ca");
    }
    if (endpoint.tls && options.journal_tls.trusted_roots.empty()) {
      return wrong("--journal-etcd " + endpoint.url() + " needs --journal-etcd-ca");
    }
  }
  if (options.journal_tls.certificate.empty() != options.journal_tls.private_key.empty()) {
    return wrong(
        "--journal-etcd-certificate-file and --journal-etcd-private-key-file belong together: give "
        "both or none");
  }
  if (options.journal_prefix.empty()) {
    return wrong("--journal-etcd-prefix must not be empty");
  }
  if (options.journal_lease_seconds < 2 || options.journal_lease_seconds > 300) {
    return wrong("--journal-etcd-lease-seconds takes 2 to 300");
  }
  if (options.public_url.empty() && (options.host == "0.0.0.0" || options.host == "::")) {
    return wrong("--host " + options.host +
                 " is no address for the other one to name: give --public-url, too");
  }
  return {};
}

}  // namespace

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
  if (!options.api_names.empty() && !options.api_tls.certificate.empty()) {
    return wrong(
        "--api-names and --api-certificate-file: vergerd makes the API's certificate itself, or it "
        "is given; not both");
  }
  if (!options.api_names.empty() && options.api_hosts().empty()) {
    return wrong("--api-names has no name in it; for example --api-names verger.example.com");
  }
  if (!options.api_is_https() && !http::is_loopback(options.host)) {
    return wrong("--host " + options.host +
                 ": plain HTTP is for this machine alone; to listen on other addresses give "
                 "--api-names (vergerd init writes it), or --api-certificate-file and "
                 "--api-certificate-private-key-file");
  }
  if (!options.journal_etcd.empty()) {
    VERGER_RETURN_IF_ERROR(check_pair(options));
  }
  for (const auto& [name, value] : {std::pair("--poll-interval-ms", options.poll_interval_ms),
                                    std::pair("--request-deadline-ms", options.request_deadline_ms),
                                    std::pair("--permit-valid-ms", options.permit_valid_ms)}) {
    if (value < 1) {
      return wrong(std::string(name) + " must be at least 1");
    }
  }
  // Longer than a century is a mistake, and would not fit into a time.
  for (const auto& [name, value, least, most] :
       {std::tuple("--keep-progress-hours", options.keep_progress_hours, 0, 876'000),
        std::tuple("--keep-answers-hours", options.keep_answers_hours, 1, 876'000),
        std::tuple("--keep-plans-days", options.keep_plans_days, 1, 36'500),
        std::tuple("--keep-run-details-days", options.keep_run_details_days, 1, 36'500),
        std::tuple("--keep-runs-days", options.keep_runs_days, 1, 36'500),
        std::tuple("--keep-runs", options.keep_runs, 10, 1'000'000),
        std::tuple("--keep-audit-days", options.keep_audit_days, 1, 36'500),
        std::tuple("--compact-every-minutes", options.compact_every_minutes, 0, 100'000),
        std::tuple("--observe-every-seconds", options.observe_every_seconds, 1, 3'600)}) {
    if (value < least || value > most) {
      return wrong(fmt::format("{} takes {} to {}", name, least, most));
    }
  }
  if (options.notification_command_seconds < 1 || options.notification_command_seconds > 3600) {
    return wrong("--notification-command-seconds takes 1 to 3600");
  }
  VERGER_RETURN_IF_ERROR(check_mail_settings(options.mail_settings()));
  if (options.signing_command_seconds < 1 || options.signing_command_seconds > 600) {
    return wrong("--signing-command-seconds takes 1 to 600");
  }
  // Each epoch on the way is written down.
  if (options.epoch_above < 0 || options.epoch_above > 100'000) {
    return wrong("--epoch-above takes 0 to 100000");
  }
  if (options.epoch_above > 0 && !options.journal_etcd.empty()) {
    return wrong(
        "--epoch-above is for a journal in --data; with --journal-etcd restore etcd's own");
  }
  if (options.agent_certificate_days < 1) {
    return wrong("--agent-certificate-days must be at least 1");
  }
  return {};
}

}  // namespace verger::controller
