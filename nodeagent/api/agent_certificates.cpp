#include "nodeagent/api/agent_certificates.h"

#include "nodeagent/api/detail/field_table.h"

/// What agents say of certificates.
namespace verger::api {
namespace {

/// {"peers": [...]}
struct PeerHandshakes {
  std::vector<PeerHandshake> peers;
};
constexpr auto rows_of(const PeerHandshakes* /*type*/) {
  return std::tuple{needed_row("peers", &PeerHandshakes::peers)};
}

}  // namespace

static constexpr auto rows_of(const CertificateFile* /*type*/) {
  using T = CertificateFile;
  return std::tuple{needed_row("path", &T::path), row("target", &T::target),
                    row("problem", &T::problem), row("mode", &T::mode), row("owner", &T::owner)};
}

static constexpr auto rows_of(const CertificateFinding* /*type*/) {
  using T = CertificateFinding;
  return std::tuple{needed_row("severity", &T::severity), needed_row("code", &T::code),
                    row("where", &T::where), needed_row("message", &T::message),
                    row("next", &T::next)};
}

static constexpr auto rows_of(const CertificateFiles::Root* /*type*/) {
  using T = CertificateFiles::Root;
  return std::tuple{needed_row("name", &T::name), row("file", &T::file), row("pem", &T::pem)};
}

static constexpr auto rows_of(const CertificateFiles* /*type*/) {
  using T = CertificateFiles;
  return std::tuple{needed_row("certificate", &T::certificate),
                    row("key", &T::key),
                    row("chain", &T::chain),
                    row("serial", &T::serial),
                    row("notAfter", &T::not_after),
                    row("roots", &T::roots),
                    row("rootsPath", &T::roots_path),
                    row("rootsProblem", &T::roots_problem),
                    row("keyMatches", &T::key_matches),
                    row("keyType", &T::key_type),
                    row("keyEncrypted", &T::key_encrypted),
                    row("digest", &T::digest),
                    row("findings", &T::findings)};
}

static constexpr auto rows_of(const CertificateChange::Phase* /*type*/) {
  using T = CertificateChange::Phase;
  return std::tuple{needed_row("phase", &T::phase), needed_row("state", &T::state),
                    row("files", &T::files), row("restoreCommands", &T::restore_commands)};
}

static constexpr auto rows_of(const CertificateChange* /*type*/) {
  using T = CertificateChange;
  return std::tuple{needed_row("change", &T::change), row("stagedAt", &T::staged_at),
                    row("serial", &T::serial), row("serialBefore", &T::serial_before),
                    row("phases", &T::phases)};
}

static constexpr auto rows_of(const UserCertificate* /*type*/) {
  using T = UserCertificate;
  return std::tuple{needed_row("path", &T::path), row("pem", &T::pem), row("problem", &T::problem)};
}

static constexpr auto rows_of(const NodeCertificates* /*type*/) {
  using T = NodeCertificates;
  return std::tuple{needed_row("live", &T::live),
                    row("served", &T::served),
                    row("servedProblem", &T::served_problem),
                    row("reservedCommonName", &T::reserved_common_name),
                    row("loadsEcKeys", &T::loads_ec_keys),
                    row("serverOwner", &T::server_owner),
                    row("changeProblem", &T::change_problem),
                    row("signalProblem", &T::signal_problem),
                    row("users", &T::users),
                    row("change", &T::change),
                    row("takenAt", &T::taken_at)};
}

static constexpr auto rows_of(const PeerHandshake* /*type*/) {
  using T = PeerHandshake;
  return std::tuple{needed_row("name", &T::name),        row("served", &T::served),
                    row("serial", &T::serial),           row("problem", &T::problem),
                    row("trusted", &T::trusted),         row("notTrusted", &T::not_trusted),
                    row("accepted", &T::accepted),       row("notAccepted", &T::not_accepted),
                    row("shownSerial", &T::shown_serial)};
}

static constexpr auto rows_of(const CertificateStaged* /*type*/) {
  using T = CertificateStaged;
  return std::tuple{needed_row("serial", &T::serial), row("notAfter", &T::not_after),
                    row("digest", &T::digest), row("change", &T::change)};
}

static constexpr auto rows_of(const CertificateSwitched* /*type*/) {
  using T = CertificateSwitched;
  return std::tuple{needed_row("phase", &T::phase),
                    needed_row("files", &T::files),
                    row("serial", &T::serial),
                    row("serialBefore", &T::serial_before),
                    row("at", &T::at),
                    row("proven", &T::proven),
                    row("notProven", &T::not_proven)};
}

std::string_view to_string(CertificatePhase phase) { return word_of(phase); }
std::string_view to_string(ReloadBy by) { return word_of(by); }

Result<CertificatePhase> parse_certificate_phase(std::string_view text) {
  return parse_word<CertificatePhase>(text);
}
Result<ReloadBy> parse_reload_by(std::string_view text) { return parse_word<ReloadBy>(text); }

std::string to_text(const CertificateFiles& files) { return text_of_rows(files); }
std::string to_text(const CertificateChange& change) { return text_of_rows(change); }
std::string to_text(const NodeCertificates& certificates) { return text_of_rows(certificates); }
std::string to_text(const std::vector<PeerHandshake>& peers) {
  return text_of_rows(PeerHandshakes{peers});
}
std::string to_text(const CertificateStaged& result) { return text_of_rows(result); }
std::string to_text(const CertificateSwitched& result) { return text_of_rows(result); }

Result<CertificateFiles> parse_certificate_files(std::string_view body) {
  return parse_rows<CertificateFiles>(body, "certificates", Errc::kCorruption);
}

Result<NodeCertificates> parse_node_certificates(std::string_view body) {
  return parse_rows<NodeCertificates>(body, "certificates", Errc::kCorruption);
}

Result<std::vector<PeerHandshake>> parse_peer_handshakes(std::string_view body) {
  VERGER_TRY(auto read, parse_rows<PeerHandshakes>(body, "handshakes", Errc::kCorruption));
  return std::move(read.peers);
}

Result<CertificateStaged> parse_certificate_staged(std::string_view result) {
  return parse_rows<CertificateStaged>(result, "result", Errc::kCorruption);
}

Result<CertificateSwitched> parse_certificate_switched(std::string_view result) {
  return parse_rows<CertificateSwitched>(result, "result", Errc::kCorruption);
}

}  // namespace verger::api
