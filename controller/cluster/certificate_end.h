#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/snapshot.h"

namespace verger::controller {

/// Where a certificate of a node was seen, and when it ends.
struct CertificateEnd {
  /// "node" and "agent": as new connections are shown it; "files": on disk; "users": a user's, on
  /// disk.
  std::string of{};
  planner::CertificateSeen::Kind kind = planner::CertificateSeen::Kind::kLeaf;
  std::string subject{};
  std::string fingerprint{};
  Ticks not_before{};
  Ticks not_after{};
};

/// Of each place and kind the first to end: leaf, intermediates and root of what node and agent
/// serve, and of the node's files. Then each certificate of a user. In this order.
std::vector<CertificateEnd> certificate_ends(const planner::NodeSnapshot& node);

/// Whole days; negative once it has expired.
std::int64_t days_left(const planner::CertificateSeen& certificate, Ticks now);

}  // namespace verger::controller
