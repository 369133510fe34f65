#include "controller/operations/certificates/controller_trust.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::controller::certificate_change {
namespace {

using certificates::CertificateInfo;

bool is_among(const std::vector<CertificateInfo>& trusted, const CertificateInfo& root) {
  return std::ranges::find(trusted, root.fingerprint, &CertificateInfo::fingerprint) !=
         trusted.end();
}

/// The root from which the chain comes; nullptr: it is none of the new ones, and lint says so.
const CertificateInfo* root_of(const ShownLater& later) {
  if (later.chain.empty()) {
    return nullptr;
  }
  const auto found =
      std::ranges::find(later.roots, later.chain.back().issuer, &CertificateInfo::subject);
  return found == later.roots.end() ? nullptr : &*found;
}

}  // namespace

void check_controller_trust(const Peers& peers, const std::vector<ShownLater>& later,
                            planner::Preflight& out) {
  const auto trusted = peers.trusted_roots();
  const auto& cluster = peers.cluster();
  if (trusted.empty()) {
    out.notes.emplace_back(
        "which roots vergerd trusts for this cluster is not known: see that the root of the new "
        "certificates is one of them");
    return;
  }
  for (const auto& each : later) {
    const auto* root = root_of(each);
    if (root == nullptr || is_among(trusted, *root)) {
      continue;
    }
    out.refusals.push_back(
        {.code = "controller-does-not-trust",
         .node = each.node,
         .message = fmt::format("vergerd does not trust the root \"{}\" of its new certificate: it "
                                "would lose sight of the node in the middle of the change",
                                root->subject),
         .hint = fmt::format(
             "add that root beside the present ones to {}, which vergerd reads again at "
             "once; the old one may go after the change",
             cluster.trusted_roots.empty() ? std::string("vergerd's trusted roots")
                                           : cluster.trusted_roots)});
  }
}

}  // namespace verger::controller::certificate_change
