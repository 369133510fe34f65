#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/certificates/certificate_facts.h"
#include "planner/certificates/certificates_policy.h"
#include "planner/make_plan.h"

namespace verger::planner::detail {

/// What restoring everything may take at worst, and what the window is left with for it.
inline constexpr std::int64_t kRestoreMs = 30'000;

/// Which nodes change, in which order, and how long that takes. The pointers are into `snapshot`,
/// whose nodes are sorted by name; it, `policy` and `history` outlive this.
struct RolloutOrder {
  RolloutOrder(const ClusterSnapshot& seen, const Policy& wanted, const History& past,
               std::optional<CertificateFacts> found);

  const ClusterSnapshot& snapshot;
  const Policy& policy;
  const CertificatesPolicy& wanted;
  const History& history;
  std::optional<CertificateFacts> facts;      ///< nullopt: the preflight could not tell
  std::vector<const NodeSnapshot*> nodes;     ///< followers, replicas, the leader
  std::vector<const NodeSnapshot*> switched;  ///< those of them that show another leaf

  [[nodiscard]] bool trust_first() const { return facts && facts->new_roots; }
  [[nodiscard]] bool drop_roots() const {
    return facts && facts->old_roots_go && wanted.drop_old_roots;
  }
  /// From this node's own history of such steps, or what is usual; `node` empty: of the cluster.
  [[nodiscard]] DurationRange expected(std::string_view kind, std::string_view node) const;
  /// From the first switch of a leaf until all is proven, and restored if it has to be: at worst.
  [[nodiscard]] std::int64_t needed_window_ms() const;
  /// How long after the window has opened the switch of a leaf may begin, so that it, the proof and
  /// the way back still fit.
  [[nodiscard]] std::int64_t begin_within_ms(const NodeSnapshot& node) const;

  /// What must hold before the first step, ...
  [[nodiscard]] std::vector<Gate> first_gates() const;
  /// ... and before those after it.
  [[nodiscard]] std::vector<Gate> later_gates() const;
  [[nodiscard]] std::int32_t margin(const NodeSnapshot& node) const;
};

}  // namespace verger::planner::detail
