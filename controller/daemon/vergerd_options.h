#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "controller/api/retention.h"
#include "controller/daemon/mailer.h"
#include "controller/daemon/trusted_clients.h"
#include "controller/journal/etcd_journal.h"
#include "engine/settings/settings.h"
#include "nodeagent/http/tls.h"
#include "planner/policy.h"

namespace verger::controller {

/// The options of vergerd from flags, environment and file.
struct VergerdOptions {
  std::string data;
  std::string credentials;
  std::string host = "127.0.0.1";
  std::uint16_t port = 2115;
  std::string port_file;
  ClientTls tls;
  http::TlsFiles api_tls;  ///< of the API; without a certificate it is plain, on loopback
  /// Of the API, separated by commas: vergerd makes and renews its certificate itself.
  std::string api_names;
  std::string journal_etcd;  ///< URLs, separated by commas; empty: SQLite in `data`
  http::TlsFiles journal_tls;
  std::string journal_prefix = "/verger/";
  std::int64_t journal_lease_seconds = 10;
  std::string public_url;
  std::string services_ca;  ///< roots of webhooks and Prometheus servers; empty: those of `tls`
  std::int64_t epoch_above = 0;  ///< after the loss of a journal
  std::string agents_ca_file;
  std::string agents_token_file;
  std::int64_t agent_certificate_days = 90;
  std::int64_t agent_certificate_seconds = 0;
  std::string notification_commands;  ///< directory; empty: no command is run
  std::int64_t notification_command_seconds = 30;
  MailSettings mail;
  std::string authorities_directory;  ///< empty: `authorities` in `data`
  std::string signing_commands;       ///< directory; empty: no command is run
  std::int64_t signing_command_seconds = 60;
  std::int64_t poll_interval_ms = 1000;
  std::int64_t request_deadline_ms = 15'000;
  std::int64_t permit_valid_ms = 60'000;
  std::int64_t leader_hold_ms = planner::RunLimits().leader_hold_ms;
  std::int64_t election_settle_ms = planner::RunLimits().election_settle_ms;
  std::int64_t move_settle_ms = planner::RunLimits().move_settle_ms;
  std::int64_t disk_reserve_mib = planner::GateLimits().disk_reserve_bytes >> 20U;
  std::int64_t keep_progress_hours = RetentionRules().progress.count();
  std::int64_t keep_answers_hours = RetentionRules().answers.count();
  std::int64_t keep_plans_days = RetentionRules().plans.count();
  std::int64_t keep_run_details_days = RetentionRules().run_details.count();
  std::int64_t keep_runs_days = RetentionRules().runs.count();
  std::int64_t keep_runs = static_cast<std::int64_t>(RetentionRules().runs_of_cluster);
  std::int64_t keep_audit_days = RetentionRules().audit.count();
  std::int64_t compact_every_minutes = 60;
  std::int64_t observe_every_seconds = 60;
  std::int64_t end_after_seconds = 0;
  bool json_log = false;
  std::string log_level = "info";

  /// The names and addresses of `api_names`, and those of this machine itself; empty: none are
  /// given.
  [[nodiscard]] std::vector<std::string> api_hosts() const;
  /// Key, certificate and root of an API whose certificate vergerd makes itself.
  [[nodiscard]] Path api_own_certificate() const { return Path(data) / "api.pem"; }
  /// What the API shows; empty where it is plain.
  [[nodiscard]] http::TlsFiles api_files() const;
  [[nodiscard]] bool api_is_https() const { return !api_files().certificate.empty(); }
  /// The URL by which others reach the API, as far as it is configured; else empty.
  [[nodiscard]] std::string reached_at() const;
  [[nodiscard]] Path agents_ca() const {
    return agents_ca_file.empty() ? Path(data) / "agents-ca.pem" : Path(agents_ca_file);
  }
  [[nodiscard]] Path agents_token() const {
    return agents_token_file.empty() ? Path(data) / "agents-token" : Path(agents_token_file);
  }
  [[nodiscard]] Path credentials_directory() const {
    return credentials.empty() ? Path(data) / "credentials" : Path(credentials);
  }
  [[nodiscard]] Path authorities() const {
    return authorities_directory.empty() ? Path(data) / "authorities" : Path(authorities_directory);
  }
  [[nodiscard]] std::chrono::seconds agent_certificate_lifetime() const {
    return agent_certificate_seconds > 0 ? std::chrono::seconds(agent_certificate_seconds)
                                         : std::chrono::hours(24 * agent_certificate_days);
  }
  /// Error: kInvalidArgument.
  [[nodiscard]] Result<EtcdOptions> etcd() const;
  /// What plans start from.
  [[nodiscard]] planner::Policy policy() const;
  /// How long the journal keeps what.
  [[nodiscard]] RetentionRules retention() const;
  /// With the roots of other services where it has none of its own.
  [[nodiscard]] MailSettings mail_settings() const;
};

void add_options(settings::Settings& all, VergerdOptions& options);

/// Options that do not go together. Error: kInvalidArgument, with what to give.
Result<void> check_options(const VergerdOptions& options);

}  // namespace verger::controller
