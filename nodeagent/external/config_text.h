#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

/// The few lines of a server's configuration file (YAML) that an agent changes; every other byte
/// stays as it is. Keys compare without case, '-' and '_', as servers do.
namespace verger::external {

struct ClusterLines {
  std::int32_t size = 0;  ///< ClusterSize; 0: the file has no such line
  bool has_seeds = false;
  std::vector<std::string> seeds{};  ///< GossipSeed, "host:port" each
};

/// Error: kUnsupported: a line says it in a way that is not understood, or says it twice.
Result<ClusterLines> read_cluster_lines(std::string_view text);

struct ClusterLinesChange {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::vector<std::string> add_seeds{};
  std::vector<std::string> remove_seeds{};
};
/// Seeds are changed where the file lists some; those that it has, or lacks, already stay so.
/// Errors: kConflict: the file's size is not `from`; kUnsupported.
Result<std::string> change_cluster_lines(std::string_view text, const ClusterLinesChange& change);

}  // namespace verger::external
