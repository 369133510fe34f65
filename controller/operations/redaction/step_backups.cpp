#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/backup_catalogue.h"
#include "controller/operations/redaction/redaction_support.h"
#include "controller/operations/redaction/step_kinds.h"
#include "engine/base/clock.h"

namespace verger::controller::redactions {
namespace {

using nlohmann::json;

/// Of the catalogues at the end of the run. A backup that ends before the first of the events does
/// not have them; of any other it is not known how the nodes were when it was made.
json inventory_of(const StepContext& context, const KnownBackups& known) {
  const auto list = agreed_list_of(context.values);
  auto backups = json::array();
  for (const auto& each : known.backups) {
    const auto& made = each.generation;
    const bool is_older =
        !list.empty() && made.end_position >= 0 && made.end_position <= list.front().position;
    if (is_older || (!made.cluster.empty() && made.cluster != context.cluster.name)) {
      continue;
    }
    backups.push_back(
        {{"generation", made.id},
         {"node", made.node},
         {"repository", each.repository},
         {"started_at", made.started_at == Ticks() ? json() : json(format_ticks(made.started_at))},
         {"end_position", made.end_position < 0 ? json() : json(made.end_position)}});
  }
  auto problems = json::array();
  for (const auto& gap : known.gaps) {
    problems.push_back(
        gap.repository.empty()
            ? fmt::format("{} does not show its repositories: {}", gap.node, gap.reason)
            : fmt::format("{} cannot use its repository \"{}\": {}", gap.node, gap.repository,
                          gap.reason));
  }
  return {{"backups", std::move(backups)}, {"problems", std::move(problems)}};
}

class BackupsStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kBackups; }
  net::awaitable<Readiness> prepare(StepContext /*context*/) override { co_return steps::ready(); }
  net::awaitable<ActAnswer> act(StepContext /*context*/) override {
    co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
  }
  net::awaitable<Verdict> observe(StepContext context) override {
    const auto known = co_await known_backups(context.peers, "");
    co_return steps::done(inventory_of(context, known));
  }
};

}  // namespace

std::unique_ptr<StepKind> make_backups_step() { return std::make_unique<BackupsStep>(); }

}  // namespace verger::controller::redactions
