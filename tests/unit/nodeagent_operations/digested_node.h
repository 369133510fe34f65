#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/nodeagent_operations/still_node.h"

namespace verger::agent {

/// What the scripted work was made to do.
struct DigestScript {
  int made = 0;
  int steps = 0;
  int needed = 50;
  std::vector<streams::DigestOptions> options;
  std::optional<Error> fails;
  std::size_t chunks = 0;  ///< in the result
};

class ScriptedWork final : public node::DigestWork {
 public:
  explicit ScriptedWork(DigestScript& script) : script_(script) {
    digest_.chunks.resize(script.chunks);
  }
  Result<StepOutcome> step(Budget) override {
    ++script_.steps;
    ++steps_;
    if (script_.fails) {
      return *script_.fails;
    }
    return StepOutcome{steps_ < script_.needed ? StepOutcome::Kind::kMore
                                               : StepOutcome::Kind::kDone};
  }
  [[nodiscard]] const streams::DatabaseDigest& digest() const override { return digest_; }
  [[nodiscard]] LogPosition position() const override { return LogPosition(steps_ * 10); }
  [[nodiscard]] LogPosition end() const override { return LogPosition(script_.needed * 10); }

 private:
  DigestScript& script_;
  int steps_ = 0;
  streams::DatabaseDigest digest_{};
};

class DigestedNode final : public StillNode {
 public:
  explicit DigestedNode(DigestScript& script) : script_(script) {}
  std::string instance_id() const override { return instance; }
  node::ChunkInventory chunks() const override { return inventory; }
  Result<std::vector<streams::ScavengePoint>> scavenge_points() const override {
    streams::ScavengePoint point;
    point.position = LogPosition(2'500);
    point.number = EventNumber(3);
    return std::vector{point};
  }
  Result<std::shared_ptr<node::DigestWork>> make_digest_job(
      std::int64_t, const streams::DigestOptions& options) const override {
    ++script_.made;
    script_.options.push_back(options);
    return std::make_shared<ScriptedWork>(script_);
  }
  std::string instance = "i1";
  node::ChunkInventory inventory{
      .chunk_size = 1'000,
      .files = {
          {.start = 0, .bytes = 900}, {.start = 1, .bytes = 800}, {.start = 2, .bytes = 700}}};

 private:
  DigestScript& script_;
};

}  // namespace verger::agent
