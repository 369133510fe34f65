#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/gather.h"
#include "controller/executor/looking_step.h"
#include "controller/operations/restore/restore_support.h"
#include "controller/operations/restore/room.h"
#include "controller/operations/restore/step_kinds.h"
#include "engine/base/quantities.h"

namespace verger::controller::cluster_restore {
namespace {

using nlohmann::json;
using steps::text_parameter;

/// What one agent says of the backup that the plan is about.
struct Found {
  std::string waits;  ///< it cannot tell now
  std::string fails;  ///< and will not
};

net::awaitable<Found> look_at_one(std::shared_ptr<Peers> peers, std::string node,
                                  planner::Step step, std::int64_t reserve) {
  const auto generation = text_parameter(step, "generation");
  const auto repository = text_parameter(step, "repository");
  const auto wanted_id = text_parameter(step, "repositoryId");
  const auto repositories = co_await peers->backup_repositories(node);
  if (!repositories) {
    co_return Found{.waits = fmt::format("{}: {}", node, repositories.error().message),
                    .fails = {}};
  }
  const auto own = std::ranges::find(*repositories, repository, &api::BackupRepository::name);
  if (own == repositories->end() || (!wanted_id.empty() && own->id != wanted_id)) {
    co_return Found{.waits = {},
                    .fails = fmt::format("{}: its agent's repository {} is no longer the one that "
                                         "the plan was made on",
                                         node, repository)};
  }
  const auto backups = co_await peers->backups(node, repository);
  if (!backups) {
    co_return Found{.waits = fmt::format("{}: {}", node, backups.error().message), .fails = {}};
  }
  const auto found = std::ranges::find(*backups, generation, &api::BackupGeneration::id);
  if (found == backups->end() || !found->damage.empty()) {
    co_return Found{.waits = {},
                    .fails = fmt::format("{}: backup {} {}", node, generation,
                                         found == backups->end() ? "is gone" : found->damage)};
  }
  const auto facts = co_await peers->facts(node);
  if (!facts) {
    co_return Found{.waits = fmt::format("{}: {}", node, facts.error().message), .fails = {}};
  }
  if (std::ranges::find(facts->kept_restores, generation) != facts->kept_restores.end()) {
    co_return Found{.waits = {},
                    .fails = fmt::format("{}: it keeps the files from before an earlier restore of "
                                         "backup {}; remove them with: verger restore discard-old",
                                         node, generation)};
  }
  const auto room = room_on(*facts);
  const auto needed = steps::int_parameter(step, "restoredBytes", 0) + reserve;
  if (room >= 0 && room < needed) {
    co_return Found{.waits = {},
                    .fails = fmt::format("{}: {} are free, and {} are needed", node,
                                         human_bytes(room), human_bytes(needed))};
  }
  co_return Found{};
}

class PrepareStep final : public steps::LookingStep {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kPrepare; }

 private:
  net::awaitable<Verdict> look(StepContext context) override {
    std::vector<net::awaitable<Found>> looks;
    const auto nodes = steps::list_parameter(context.step, "nodes");
    looks.reserve(nodes.size());
    for (const auto& node : nodes) {
      looks.push_back(
          look_at_one(context.peers, node, context.step, context.policy.gates.disk_reserve_bytes));
    }
    std::string waits;
    for (const auto& found : co_await gather(std::move(looks))) {
      if (!found.fails.empty()) {
        co_return steps::verdict(Verdict::Kind::kFailed, found.fails);
      }
      if (waits.empty()) {
        waits = found.waits;
      }
    }
    if (!waits.empty()) {
      co_return steps::running({{"phase", waits}});
    }
    auto before = json::object();
    for (const auto& name : nodes) {
      const auto* node = context.snapshot.find(name);
      before[name] = {{"writer", node == nullptr ? -1 : node->writer_checkpoint}};
    }
    auto out = steps::done({{"generation", text_parameter(context.step, "generation")}});
    const auto suffix = context.step.node.empty() ? std::string() : "/" + context.step.node;
    out.values[std::string(names::kBeforeValue) + suffix] = before.dump();
    co_return out;
  }
};

}  // namespace

std::unique_ptr<StepKind> make_prepare_step() { return std::make_unique<PrepareStep>(); }

}  // namespace verger::controller::cluster_restore
