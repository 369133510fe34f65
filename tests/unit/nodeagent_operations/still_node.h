#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nodeagent/node/inspection.h"

namespace verger::agent {

/// A follower on which nothing ever happened; a test overrides what it is about.
class StillNode : public node::NodeInspection {
 public:
  std::string instance_id() const override { return {}; }
  api::NodeState state() const override { return api::NodeState::kFollower; }
  node::NodePositions positions() const override { return {}; }
  node::ChunkInventory chunks() const override { return {}; }
  const Path& database_directory() const override { return directory_; }
  const Path& index_directory() const override { return directory_; }
  Result<std::vector<streams::ScavengePoint>> scavenge_points() const override {
    return std::vector<streams::ScavengePoint>{};
  }
  std::optional<api::UnfinishedScavenge> unfinished_scavenge() const override { return {}; }
  std::optional<api::ScavengePoint> last_finished_point() const override { return {}; }
  std::optional<api::RunningScavenge> running_scavenge() const override { return {}; }
  Result<std::shared_ptr<node::DigestWork>> make_digest_job(
      std::int64_t, const streams::DigestOptions&) const override {
    return Error{Errc::kNotFound, "no point"};
  }

 private:
  Path directory_ = "/";
};

}  // namespace verger::agent
