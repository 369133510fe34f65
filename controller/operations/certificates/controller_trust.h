#pragma once

#include <string>
#include <vector>

#include "controller/cluster/peers.h"
#include "nodeagent/certificates/certificate_info.h"
#include "planner/preflight.h"

/// Whether vergerd itself will accept what nodes show once they have changed: it opens connections
/// to them all the time, and would take nodes that it does not trust for nodes that are down.
namespace verger::controller::certificate_change {

/// What the cluster's nodes are to show: the leaf with its intermediates, and the roots among which
/// its own is. Certificates as `certificates::read_details` reads them.
struct ShownLater {
  std::string node{};
  std::vector<certificates::CertificateInfo> chain{};
  std::vector<certificates::CertificateInfo> roots{};
};

/// Adds a refusal for each node whose new root vergerd does not trust, or a note where it is not
/// known what it trusts.
void check_controller_trust(const Peers& peers, const std::vector<ShownLater>& later,
                            planner::Preflight& out);

}  // namespace verger::controller::certificate_change
