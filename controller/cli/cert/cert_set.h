#pragma once

#include <map>
#include <string>
#include <vector>

#include "nodeagent/certificates/lint.h"

namespace verger::cli {

/// New certificates of all nodes, as they are brought to the agents: each file under the SHA-256 of
/// its content, and a manifest, itself such a file, that says what each is.
struct CertificateSet {
  struct File {
    std::string sha256{};
    std::string content{};
  };
  std::map<std::string, std::vector<File>> files{};  ///< by node: those that it needs
  File manifest{};                                   ///< for all nodes; no secret
};

/// A node of the cluster, as registered.
struct NodeOfCluster {
  std::string name{};
  bool has_agent = false;
};

/// Why the files cannot be brought to the nodes of the cluster, all reasons; empty: they can.
std::vector<std::string> set_problems(const certificates::LintInput& input,
                                      const std::string& directory, const std::string& cluster,
                                      const std::vector<NodeOfCluster>& nodes);
/// Of what was read whole. A node without a key keeps the one it has.
CertificateSet make_set(const certificates::LintInput& input);

}  // namespace verger::cli
