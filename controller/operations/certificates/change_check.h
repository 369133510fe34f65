#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/operations/certificates/controller_trust.h"
#include "controller/operations/certificates/nodes_seen.h"
#include "nodeagent/certificates/lint.h"
#include "planner/certificates/certificate_facts.h"

namespace verger::controller::certificate_change {

struct RootFile {
  std::string name{};
  std::string pem{};
};

/// New files of a node, wherever they are.
struct NewFiles {
  std::string where{};            ///< for messages
  std::string chain{};            ///< PEM, leaf first; empty: not known yet
  std::vector<RootFile> roots{};  ///< all that it is to trust; empty: those that it trusts now
};

/// What a change is checked against.
struct ChangeQuestion {
  const planner::ClusterSnapshot& snapshot;
  const std::vector<NodeSeen>& nodes;
  /// By node. Where it is missing, `NodeSeen::next` is what is new; where that is missing too, only
  /// what the node has now is looked at.
  std::map<std::string, NewFiles> next{};
  Ticks now{};
  std::chrono::milliseconds window{};
};

struct ChangeAnswer {
  std::vector<certificates::Finding> findings{};  ///< lint's, and those of the agents
  std::vector<certificates::TrustStage> stages{};
  /// Without names for requests, which need no new certificate.
  planner::CertificateFacts facts{};
  /// What the nodes are to show and to trust, as far as it is known.
  std::vector<ShownLater> later{};
  [[nodiscard]] bool passed() const;
};

/// A function of values: the same as `verger cert lint`, with what agents see of keys and files.
ChangeAnswer check_change(const ChangeQuestion& question);

/// Those of a PEM text that are self-signed.
std::string roots_in(std::string_view pem);
/// Subjects of those that issued what nodes show now.
std::set<std::string> issuers_now(const std::vector<NodeSeen>& nodes);
/// What a node is to trust besides or instead of what it trusts now, so that it accepts leaves
/// below `wanted` (PEM): empty where nothing changes. Of the present ones those go that issued what
/// nodes show now; others may be those of clients.
std::vector<RootFile> next_roots(const NodeSeen& node, const std::set<std::string>& issuers,
                                 std::string_view wanted, std::string_view name);

/// "common-name-changed: n1: /etc/n1.crt: the common name …; keep …"
std::string text_of(const certificates::Finding& finding);

}  // namespace verger::controller::certificate_change
