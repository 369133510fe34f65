#include "nodeagent/api/agent_certificates.h"

#include <algorithm>
#include <array>

#include "nodeagent/api/detail/certificate_members.h"

namespace verger::api {
namespace {

constexpr std::array<std::string_view, 3> kPhases{"trust", "leaf", "drop"};
constexpr std::array<std::string_view, 2> kReloads{"route", "signal"};

void write(JsonWriter& out, const CertificateFile& file) {
  out.begin_object().member("path", file.path);
  known(out, "target", file.target);
  known(out, "problem", file.problem);
  known(out, "mode", file.mode);
  known(out, "owner", file.owner);
  out.end_object();
}

Result<CertificateFile> file_of(JsonView value, const std::string& where) {
  CertificateFile file;
  Fields fields(value, where);
  fields.need("path", file.path);
  fields.read("target", file.target);
  fields.read("problem", file.problem);
  read_known(fields, "mode", file.mode);
  read_known(fields, "owner", file.owner);
  VERGER_RETURN_IF_ERROR(fields.result());
  return file;
}

void write(JsonWriter& out, const CertificateFinding& finding) {
  out.begin_object()
      .member("severity", finding.is_error ? "error" : "warning")
      .member("code", finding.code);
  known(out, "where", finding.where);
  out.member("message", finding.message);
  known(out, "next", finding.next);
  out.end_object();
}

Result<CertificateFinding> finding_of(JsonView value, const std::string& where) {
  CertificateFinding finding;
  std::string severity;
  Fields fields(value, where);
  fields.need("severity", severity);
  fields.need("code", finding.code);
  fields.read("where", finding.where);
  fields.need("message", finding.message);
  fields.read("next", finding.next);
  if (severity != "error" && severity != "warning") {
    fields.wrong("severity", "error or warning was expected");
  }
  finding.is_error = severity == "error";
  VERGER_RETURN_IF_ERROR(fields.result());
  return finding;
}

void write(JsonWriter& out, const CertificateFiles& files) {
  out.begin_object().name("certificate");
  write(out, files.certificate);
  if (!files.key.path.empty()) {
    out.name("key");
    write(out, files.key);
  }
  known(out, "chain", files.chain);
  known(out, "serial", files.serial);
  known(out, "notAfter", files.not_after);
  out.name("roots").begin_list();
  for (const auto& root : files.roots) {
    out.begin_object().member("name", root.name).name("file");
    write(out, root.file);
    known(out, "pem", root.pem);
    out.end_object();
  }
  out.end_list();
  known(out, "rootsPath", files.roots_path);
  known(out, "rootsProblem", files.roots_problem);
  known(out, "keyMatches", files.key_matches);
  known(out, "keyType", files.key_type);
  known(out, "keyEncrypted", files.key_encrypted);
  known(out, "digest", files.digest);
  out.name("findings").begin_list();
  for (const auto& finding : files.findings) {
    write(out, finding);
  }
  out.end_list().end_object();
}

Result<CertificateFiles> files_of(JsonView value, const std::string& where) {
  CertificateFiles files;
  Fields fields(value, where);
  fields.require("certificate");
  read_member(fields, "certificate", files.certificate, &file_of);
  read_member(fields, "key", files.key, &file_of);
  fields.read("chain", files.chain);
  fields.read("serial", files.serial);
  fields.read("notAfter", files.not_after);
  read_list(fields, "roots", files.roots,
            [](JsonView element, const std::string& at) -> Result<CertificateFiles::Root> {
              CertificateFiles::Root root;
              Fields inner(element, at);
              inner.need("name", root.name);
              read_member(inner, "file", root.file, &file_of);
              inner.read("pem", root.pem);
              VERGER_RETURN_IF_ERROR(inner.result());
              return root;
            });
  fields.read("rootsPath", files.roots_path);
  fields.read("rootsProblem", files.roots_problem);
  read_known(fields, "keyMatches", files.key_matches);
  fields.read("keyType", files.key_type);
  fields.read("keyEncrypted", files.key_encrypted);
  fields.read("digest", files.digest);
  read_list(fields, "findings", files.findings, &finding_of);
  VERGER_RETURN_IF_ERROR(fields.result());
  return files;
}

void write(JsonWriter& out, const CertificateChange& change) {
  out.begin_object().member("change", change.change);
  known(out, "stagedAt", change.staged_at);
  known(out, "serial", change.serial);
  known(out, "serialBefore", change.serial_before);
  out.name("phases").begin_list();
  for (const auto& phase : change.phases) {
    out.begin_object()
        .member("phase", to_string(phase.phase))
        .member("state", phase.state)
        .member("files", phase.files);
    write_names(out, "restoreCommands", phase.restore_commands);
    out.end_object();
  }
  out.end_list().end_object();
}

Result<CertificateChange> change_of(JsonView value, const std::string& where) {
  CertificateChange change;
  Fields fields(value, where);
  fields.need("change", change.change);
  fields.read("stagedAt", change.staged_at);
  fields.read("serial", change.serial);
  fields.read("serialBefore", change.serial_before);
  read_list(fields, "phases", change.phases,
            [](JsonView element, const std::string& at) -> Result<CertificateChange::Phase> {
              CertificateChange::Phase phase;
              Fields inner(element, at);
              inner.require("phase");
              read_word(inner, "phase", phase.phase, &parse_certificate_phase);
              inner.need("state", phase.state);
              inner.read("files", phase.files);
              read_names(inner, "restoreCommands", phase.restore_commands);
              VERGER_RETURN_IF_ERROR(inner.result());
              return phase;
            });
  VERGER_RETURN_IF_ERROR(fields.result());
  return change;
}

void write(JsonWriter& out, const PeerHandshake& peer) {
  out.begin_object().member("name", peer.name);
  known(out, "served", peer.served);
  known(out, "serial", peer.serial);
  known(out, "problem", peer.problem);
  known(out, "trusted", peer.trusted);
  known(out, "notTrusted", peer.not_trusted);
  known(out, "accepted", peer.accepted);
  known(out, "notAccepted", peer.not_accepted);
  known(out, "shownSerial", peer.shown_serial);
  out.end_object();
}

Result<PeerHandshake> peer_handshake_of(JsonView value, const std::string& where) {
  PeerHandshake peer;
  Fields fields(value, where);
  fields.need("name", peer.name);
  fields.read("served", peer.served);
  fields.read("serial", peer.serial);
  fields.read("problem", peer.problem);
  read_known(fields, "trusted", peer.trusted);
  fields.read("notTrusted", peer.not_trusted);
  read_known(fields, "accepted", peer.accepted);
  fields.read("notAccepted", peer.not_accepted);
  fields.read("shownSerial", peer.shown_serial);
  VERGER_RETURN_IF_ERROR(fields.result());
  return peer;
}

template <class T>
std::string certificate_text_of(const T& value) {
  JsonWriter out(1'024);
  write(out, value);
  return out.take();
}

}  // namespace

std::string_view to_string(CertificatePhase phase) {
  return kPhases.at(static_cast<std::size_t>(phase));
}

Result<CertificatePhase> parse_certificate_phase(std::string_view text) {
  const auto* const found = std::ranges::find(kPhases, text);
  if (found == kPhases.end()) {
    return Error{Errc::kInvalidArgument, "trust, leaf or drop was expected"};
  }
  return static_cast<CertificatePhase>(found - kPhases.begin());
}

std::string_view to_string(ReloadBy by) { return kReloads.at(static_cast<std::size_t>(by)); }

Result<ReloadBy> parse_reload_by(std::string_view text) {
  const auto* const found = std::ranges::find(kReloads, text);
  if (found == kReloads.end()) {
    return Error{Errc::kInvalidArgument, "route or signal was expected"};
  }
  return static_cast<ReloadBy>(found - kReloads.begin());
}

std::string to_text(const CertificateFiles& files) { return certificate_text_of(files); }
std::string to_text(const CertificateChange& change) { return certificate_text_of(change); }

std::string to_text(const NodeCertificates& certificates) {
  JsonWriter out(4'096);
  out.begin_object().name("live");
  write(out, certificates.live);
  known(out, "served", certificates.served);
  known(out, "servedProblem", certificates.served_problem);
  known(out, "reservedCommonName", certificates.reserved_common_name);
  known(out, "loadsEcKeys", certificates.loads_ec_keys);
  known(out, "serverOwner", certificates.server_owner);
  known(out, "changeProblem", certificates.change_problem);
  known(out, "signalProblem", certificates.signal_problem);
  if (certificates.change) {
    out.name("change");
    write(out, *certificates.change);
  }
  known(out, "takenAt", certificates.taken_at);
  return out.end_object().take();
}

std::string to_text(const std::vector<PeerHandshake>& peers) {
  JsonWriter out(4'096);
  out.begin_object().name("peers").begin_list();
  for (const auto& peer : peers) {
    write(out, peer);
  }
  return out.end_list().end_object().take();
}

std::string to_text(const CertificateStaged& result) {
  JsonWriter out;
  out.begin_object()
      .member("serial", result.serial)
      .member("notAfter", result.not_after)
      .member("digest", result.digest)
      .name("change");
  write(out, result.change);
  return out.end_object().take();
}

std::string to_text(const CertificateSwitched& result) {
  JsonWriter out;
  out.begin_object().member("phase", to_string(result.phase)).member("files", result.files);
  known(out, "serial", result.serial);
  known(out, "serialBefore", result.serial_before);
  known(out, "at", result.at);
  known(out, "proven", result.proven);
  known(out, "notProven", result.not_proven);
  return out.end_object().take();
}

Result<CertificateFiles> parse_certificate_files(std::string_view body) {
  return parse_as(body, "certificates", Errc::kCorruption, &files_of);
}

Result<NodeCertificates> parse_node_certificates(std::string_view body) {
  return parse_as(body, "certificates", Errc::kCorruption,
                  [](JsonView value, const std::string& where) -> Result<NodeCertificates> {
                    NodeCertificates out;
                    Fields fields(value, where);
                    fields.require("live");
                    read_member(fields, "live", out.live, &files_of);
                    fields.read("served", out.served);
                    fields.read("servedProblem", out.served_problem);
                    read_known(fields, "reservedCommonName", out.reserved_common_name);
                    fields.read("loadsEcKeys", out.loads_ec_keys);
                    read_known(fields, "serverOwner", out.server_owner);
                    fields.read("changeProblem", out.change_problem);
                    fields.read("signalProblem", out.signal_problem);
                    if (fields.has("change")) {
                      read_member(fields, "change", out.change.emplace(), &change_of);
                    }
                    fields.read("takenAt", out.taken_at);
                    VERGER_RETURN_IF_ERROR(fields.result());
                    return out;
                  });
}

Result<std::vector<PeerHandshake>> parse_peer_handshakes(std::string_view body) {
  return parse_as(
      body, "handshakes", Errc::kCorruption,
      [](JsonView value, const std::string& where) -> Result<std::vector<PeerHandshake>> {
        std::vector<PeerHandshake> out;
        Fields fields(value, where);
        fields.require("peers");
        read_list(fields, "peers", out, &peer_handshake_of);
        VERGER_RETURN_IF_ERROR(fields.result());
        return out;
      });
}

Result<CertificateStaged> parse_certificate_staged(std::string_view result) {
  return parse_as(result, "result", Errc::kCorruption,
                  [](JsonView value, const std::string& where) -> Result<CertificateStaged> {
                    CertificateStaged out;
                    Fields fields(value, where);
                    fields.need("serial", out.serial);
                    fields.read("notAfter", out.not_after);
                    fields.read("digest", out.digest);
                    read_member(fields, "change", out.change, &change_of);
                    VERGER_RETURN_IF_ERROR(fields.result());
                    return out;
                  });
}

Result<CertificateSwitched> parse_certificate_switched(std::string_view result) {
  return parse_as(result, "result", Errc::kCorruption,
                  [](JsonView value, const std::string& where) -> Result<CertificateSwitched> {
                    CertificateSwitched out;
                    Fields fields(value, where);
                    fields.require("phase");
                    read_word(fields, "phase", out.phase, &parse_certificate_phase);
                    fields.read("files", out.files);
                    fields.read("serial", out.serial);
                    fields.read("serialBefore", out.serial_before);
                    fields.read("at", out.at);
                    fields.read("proven", out.proven);
                    fields.read("notProven", out.not_proven);
                    VERGER_RETURN_IF_ERROR(fields.result());
                    return out;
                  });
}

}  // namespace verger::api
