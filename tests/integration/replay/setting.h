#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "tests/integration/replay/compare.h"
#include "tests/support/nodes/node_cluster.h"

namespace verger::testing {

/// Embedded nodes in the setting that a recording was made in.
class Setting {
 public:
  explicit Setting(const NodeClusterOptions& options);

  /// Users alice, oscar, ada and dora as in the recordings; the last one disabled if wanted.
  void create_users(bool disable_dora);
  /// Streams "load-1-0" and so on over several chunks; all but the last `keep` events of each are
  /// garbage.
  void fill(int streams, int events, int keep = 8);
  /// Waits until no scavenge runs on node `i`, and what it reports of it is written.
  void wait_until_idle(std::size_t i);
  /// What a redaction leaves of event `n` of `stream` as fill() wrote it: the flag, bytes of 0xFF.
  void redact(std::size_t i, const std::string& stream, int n);
  void restart(std::size_t i);
  std::size_t leader();
  /// A voter that does not lead.
  std::size_t follower();

  http::Response send(std::size_t i, http::Request request);

  SimWorld world;
  NodeCluster cluster;
};

/// One insecure node; three voters that demand credentials; three insecure voters and a replica.
std::unique_ptr<Setting> single_node(const node::NodeMisbehaviour& misbehaviour = {});
std::unique_ptr<Setting> secure_cluster();
std::unique_ptr<Setting> cluster_with_replica();

/// The recording's words for the caller, as user and password.
std::optional<std::pair<std::string, std::string>> credentials_of(const std::string& word);
http::Request request_of(const nlohmann::json& exchange, std::size_t node, const Names& names);

}  // namespace verger::testing
