#include <algorithm>
#include <fmt/format.h>

#include "planner/certificates/certificate_steps.h"
#include "planner/certificates/plan_certificates.h"
#include "planner/certificates/renewal.h"
#include "planner/detail/make_field.h"
#include "planner/operation.h"

namespace verger::planner {
namespace {

using detail::field;

/// Names are parts of hashes and journals.
std::span<const Field> certificate_fields() {
  static const std::vector<Field> kFields{
      field<&CertificatesPolicy::source>("source", "certificates.source",
                                         "Where the new certificates come from")
          .accepted(),
      field<&CertificatesPolicy::set>("set", "certificates.set",
                                      "SHA-256 of the set that was brought to the agents "
                                      "(source files)")
          .accepted(),
      field<&CertificatesPolicy::certificate_path>(
          "pathCertificate", "certificates.path.certificate",
          "File on each node with its new certificate; {node} is the node's name (source path)")
          .accepted(),
      field<&CertificatesPolicy::key_path>(
          "pathKey", "certificates.path.key",
          "File on each node with its new key; without it the present key stays (source path)")
          .accepted(),
      field<&CertificatesPolicy::roots_path>(
          "pathRoots", "certificates.path.roots",
          "Directory on each node with all new trusted roots; without it the present ones stay "
          "(source path)")
          .accepted(),
      field<&CertificatesPolicy::authority>(
          "authority", "certificates.authority",
          "CA in vergerd's directory of authorities: it signs, or the signing command does for it "
          "(source csr)")
          .accepted(),
      field<&CertificatesPolicy::sign_command>(
          "signCommand", "certificates.sign_command",
          "Name of the vergerd signing command that has the requests signed (source csr)")
          .accepted(),
      field<&CertificatesPolicy::new_authority>(
          "newAuthority", "certificates.new_authority",
          "Trust the root that the signing command answers with, also where no node trusts it yet "
          "(source csr, without an authority)")
          .accepted()
          .later(),
      field<&CertificatesPolicy::key_type>("keyType", "certificates.key_type",
                                           "Kind of the new keys (source csr)")
          .accepted(),
      field<&CertificatesPolicy::days>(
          "days", "certificates.days",
          "Days for which a certificate signed by an authority is valid (source csr)")
          .between(1, 3'650)
          .accepted(),
      field<&CertificatesPolicy::common_name>(
          "commonName", "certificates.common_name",
          "Common name of the new certificates; without it the present one stays (source csr)")
          .accepted(),
      field<&CertificatesPolicy::reload>("reload", "certificates.reload",
                                         "How a node is made to read its certificates again")
          .accepted(),
      field<&CertificatesPolicy::drop_old_roots>(
          "dropOldRoots", "certificates.drop_old_roots",
          "Whether roots that are none of the new ones are no longer trusted at the end")
          .accepted(),
      field<&CertificatesPolicy::window_ms>(
          "windowMs", "certificates.window",
          "From the first new certificate shown until all are proven, or all is restored")
          .length()
          .accepted(),
      field<&CertificatesPolicy::watch_ms>(
          "watchMs", "certificates.watch",
          "How long the cluster is watched after the switch; 0s: not at all")
          .length()
          .accepted(),
      field<&CertificatesPolicy::obtain_deadline_ms>("obtainDeadlineMs", "deadlines.obtain",
                                                     "For having new certificates signed")
          .length(),
      field<&CertificatesPolicy::renew_at_percent>(
          "renewAtPercent", "certificates.renew_at",
          "A scheduled run renews once this share of the lifetime has passed; 0: whenever it is "
          "due")
          .between(0, 95)
          .shown(),
      field<&CertificatesPolicy::renew_jitter_percent>(
          "renewJitterPercent", "certificates.renew_jitter",
          "Up to this share of the lifetime earlier, so that not all clusters renew at once")
          .between(0, 30)
          .shown(),
  };
  return kFields;
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::vector<FieldProblem> check_certificates(const Policy& policy) {
  const auto& own = certificates_of(policy);
  std::vector<FieldProblem> out;
  const auto problem = [&out](std::string message, std::string hint) {
    out.push_back(
        {.place = "certificates", .message = std::move(message), .hint = std::move(hint)});
  };
  if (!own.set.empty() && !is_sha256(own.set)) {
    problem(fmt::format("set is \"{}\"", own.set), "it takes a SHA-256 of 64 small hex digits");
  }
  for (const auto& [name, path] :
       {std::pair("path.certificate", &own.certificate_path), std::pair("path.key", &own.key_path),
        std::pair("path.roots", &own.roots_path)}) {
    if (!path->empty() && !path->starts_with('/')) {
      problem(fmt::format("{} is \"{}\"", name, *path),
              "it takes an absolute path on the nodes, such as /etc/certs/{node}/node.crt");
    }
  }
  return out;
}

constexpr std::string_view kRolloutSteps[] = {certificate_steps::kSwitch};
constexpr AgentKind kRolloutKinds[] = {{.name = "certificate_stage", .touches_files = false},
                                       {.name = "certificate_switch", .touches_files = false},
                                       {.name = "certificate_restore", .touches_files = false},
                                       {.name = "certificate_discard", .touches_files = false}};

}  // namespace

std::string_view to_string(CertificateSource source) {
  switch (source) {
    case CertificateSource::kCsr:
      return "csr";
    case CertificateSource::kFiles:
      return "files";
    case CertificateSource::kPath:
      return "path";
  }
  return "csr";
}
std::string_view to_string(CertificateReload reload) {
  return reload == CertificateReload::kRoute ? "route" : "signal";
}
std::string_view to_string(CertificateKey key) {
  switch (key) {
    case CertificateKey::kRsa2048:
      return "rsa-2048";
    case CertificateKey::kRsa3072:
      return "rsa-3072";
    case CertificateKey::kRsa4096:
      return "rsa-4096";
    case CertificateKey::kEcP256:
      return "ec-p256";
    case CertificateKey::kEcP384:
      return "ec-p384";
  }
  return "rsa-2048";
}

CertificatesPolicy& certificates_of(Policy& policy) {
  return std::get<CertificatesPolicy>(policy.operation);
}
const CertificatesPolicy& certificates_of(const Policy& policy) {
  return std::get<CertificatesPolicy>(policy.operation);
}

const Operation& CertificatesPolicy::operation() {
  static const Operation kCertificates{
      .name = "certificates",
      .summary = "Plan new certificates on all nodes of a cluster",
      .example = "--source csr --authority company",
      .fields = certificate_fields,
      .defaults = [] { return OperationPolicy(CertificatesPolicy()); },
      .plan = detail::plan_certificates,
      .check = check_certificates,
      .moves_leader = [](const Policy&) { return false; },
      .time_at_work_ms = detail::time_at_certificates_ms,
      .need = detail::need_of_certificates,
      .work_steps = kRolloutSteps,

      .agent_kinds = kRolloutKinds};
  return kCertificates;
}

}  // namespace verger::planner
