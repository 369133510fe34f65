#include "controller/cluster/certificate_end.h"

#include <algorithm>

#include "engine/base/clock.h"

namespace verger::controller {
namespace {

constexpr std::int64_t kTicksPerDay = 86'400 * kTicksPerSecond;

CertificateEnd end_of(std::string of, const planner::CertificateSeen& certificate) {
  return {.of = std::move(of),
          .kind = certificate.kind,
          .subject = certificate.subject,
          .fingerprint = certificate.fingerprint,
          .not_before = certificate.not_before,
          .not_after = certificate.not_after};
}

void add_first_ends(const std::string& of, const std::vector<planner::CertificateSeen>& chain,
                    std::vector<CertificateEnd>& into) {
  using Kind = planner::CertificateSeen::Kind;
  for (const auto kind : {Kind::kLeaf, Kind::kIntermediate, Kind::kRoot}) {
    const planner::CertificateSeen* first = nullptr;
    for (const auto& each : chain) {
      if (each.kind == kind && (first == nullptr || each.not_after < first->not_after)) {
        first = &each;
      }
    }
    if (first != nullptr) {
      into.push_back(end_of(of, *first));
    }
  }
}

}  // namespace

std::vector<CertificateEnd> certificate_ends(const planner::NodeSnapshot& node) {
  std::vector<CertificateEnd> out;
  for (const auto* of : {"node", "agent"}) {
    const auto served = std::ranges::find(node.certificates, of, &planner::ServedCertificate::of);
    if (served != node.certificates.end()) {
      add_first_ends(of, served->chain, out);
    }
  }
  if (node.certificate_files) {
    auto all = node.certificate_files->chain;
    all.insert(all.end(), node.certificate_files->roots.begin(),
               node.certificate_files->roots.end());
    add_first_ends("files", all, out);
    for (const auto& user : node.certificate_files->users) {
      out.push_back(end_of("users", user.certificate));
    }
  }
  return out;
}

std::int64_t days_left(const planner::CertificateSeen& certificate, Ticks now) {
  const auto ticks = certificate.not_after.value() - now.value();
  return ticks / kTicksPerDay - (ticks % kTicksPerDay < 0 ? 1 : 0);
}

}  // namespace verger::controller
