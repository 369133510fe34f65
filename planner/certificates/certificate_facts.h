#pragma once

#include <string>
#include <vector>

#include "engine/base/result.h"
#include "planner/json.h"

namespace verger::planner {

/// What the preflight of a change of certificates found of a node. PEM, keys and passwords are not
/// among it: it becomes a part of plans.
struct CertificateNodeFacts {
  std::string name;
  std::string serial;            ///< of the leaf that it shows now; empty: not seen
  std::string common_name;       ///< of that leaf
  std::string not_after;         ///< of that leaf, ISO-8601
  std::string next_serial;       ///< of the new leaf; empty: it is made in the run
  std::string next_common_name;  ///< of the new leaf, also of one that is still to be made
  std::string next_not_after;    ///< empty: it is made in the run
  bool leaf_changes = true;      ///< false: it shows the new leaf already, and has it in its files
  bool roots_change = false;     ///< its trusted roots are others than the new ones
  std::string change_problem;    ///< why its agent cannot change its files; empty: it can
  /// What a request for its leaf is about: all addresses that gossip advertises, and the names of
  /// the leaf that it shows now. Sorted.
  std::vector<std::string> dns_names;
  std::vector<std::string> ip_addresses;
  friend bool operator==(const CertificateNodeFacts&, const CertificateNodeFacts&) = default;
};

/// The facts of planner::Preflight for a change of certificates: written by the controller, read by
/// plan_certificates.
struct CertificateFacts {
  /// A new root that not every node trusts yet: all trust it before the first new leaf is shown.
  bool new_roots = false;
  /// Some node trusts a root that is none of the new ones. Intermediates count as roots in both:
  /// as clients servers show their leaves alone.
  bool old_roots_go = false;
  std::vector<CertificateNodeFacts> nodes;  ///< by name
  [[nodiscard]] const CertificateNodeFacts* find(std::string_view name) const;
  friend bool operator==(const CertificateFacts&, const CertificateFacts&) = default;
};

Json to_json(const CertificateFacts& facts);
/// Members that are missing have their defaults, others are ignored. Error: kInvalidArgument,
/// naming the member that is of another type.
Result<CertificateFacts> parse_certificate_facts(const Json& value);

}  // namespace verger::planner
