#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/cluster/backup_catalogue.h"
#include "controller/operations/backup/repository_work.h"
#include "controller/operations/redaction/redaction_support.h"
#include "controller/operations/redaction/step_kinds.h"
#include "engine/base/clock.h"

namespace verger::controller::redactions {
namespace {

using nlohmann::json;

/// Of the catalogues at the end of the run. A backup that ends before the first of the events does
/// not have them; of any other it is not known how the nodes were when it was made.
struct Inventory {
  json shown;                         ///< of the report
  json backups_only = json::array();  ///< of kBackupsValue
};
Inventory inventory_of(const StepContext& context, const KnownBackups& known) {
  const auto list = agreed_list_of(context.values);
  Inventory out;
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
    out.backups_only.push_back({{"generation", made.id},
                                {"repository_id", each.repository_id},
                                {"cluster", made.cluster}});
  }
  auto problems = json::array();
  for (const auto& gap : known.gaps) {
    problems.push_back(
        gap.repository.empty()
            ? fmt::format("{} does not show its repositories: {}", gap.node, gap.reason)
            : fmt::format("{} cannot use its repository \"{}\": {}", gap.node, gap.repository,
                          gap.reason));
  }
  out.shown = {{"backups", std::move(backups)}, {"problems", std::move(problems)}};
  return out;
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
    const auto inventory = inventory_of(context, known);
    auto out = steps::done(inventory.shown);
    out.values[std::string(names::kBackupsValue)] =
        json{{"backups", inventory.backups_only}}.dump();
    co_return out;
  }
};

/// Of the run's inventory, those of this cluster in that repository: one that does not say whose it
/// is may be another's, and names of repositories differ from agent to agent.
std::vector<std::string> to_expire(const StepContext& context) {
  std::vector<std::string> out;
  const auto found = context.values.find(std::string(names::kBackupsValue));
  const auto listed =
      found == context.values.end() ? json::object() : steps::parsed_or_empty(found->second);
  const auto repository = steps::text_parameter(context.step, "repositoryId");
  for (const auto& each : listed.value("backups", json::array())) {
    if (!repository.empty() && each.value("repository_id", std::string()) == repository &&
        each.value("cluster", std::string()) == context.cluster.name) {
      out.push_back(each.value("generation", std::string()));
    }
  }
  return out;
}

/// Why none may be deleted now; empty: they may.
std::string why_not_expired(const StepContext& context) {
  const auto made = steps::text_parameter(context.step, "made");
  if (!context.values.contains(std::string(names::kConfirmedValue) + made)) {
    return fmt::format(
        "{} was not seen to be redacted at the end: its new backup may hold the data", made);
  }
  const auto found = context.values.find(std::string(backups::names::kMadeValue) + made);
  if (found == context.values.end()) {
    return fmt::format("no new backup of {} was made", made);
  }
  const auto generation = steps::parsed_or_empty(found->second).value("generation", std::string());
  return backups::passed(context, backups::names::kVerifiedValue, generation).value_or(false)
             ? std::string()
             : fmt::format("the new backup {} of {} was not found sound", generation, made);
}

class ExpireStep final : public backups::RepositoryWork {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kExpire; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    if (auto why = why_not_expired(context); !why.empty()) {
      auto text = fmt::format("no backup that may hold the data was deleted: {}", why);
      auto out = steps::not_needed({{"not_needed", why},
                                    {"expired", json::array()},
                                    {std::string(kDifferences), json::array({text})}});
      out.alert = std::move(text);
      co_return out;
    }
    if (to_expire(context).empty()) {
      co_return steps::not_needed(
          {{"not_needed", "no backup there may hold the data"}, {"expired", json::array()}});
    }
    co_return steps::ready();
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    api::BackupRetainParameters parameters;
    backups::take_target(context, parameters);
    parameters.generations = to_expire(context);
    auto object = steps::parsed_or_empty(api::to_text(parameters));
    co_return co_await steps::act_through_agent(context, std::string(api::kBackupRetainKind),
                                                std::move(object));
  }

 private:
  /// Done: none of them is listed any longer. An agent that was restarted in between names those
  /// alone that it has deleted since.
  [[nodiscard]] Verdict judge_done(const StepContext& context,
                                   const std::string& result_json) const override {
    const auto retained = api::parse_backup_result<api::BackupRetained>(result_json);
    return retained
               ? steps::done({{"expired", to_expire(context)}, {"postponed", retained->postponed}})
               : backups::unreadable_result(retained.error());
  }
};

}  // namespace

std::unique_ptr<StepKind> make_expire_step() { return std::make_unique<ExpireStep>(); }
std::unique_ptr<StepKind> make_backups_step() { return std::make_unique<BackupsStep>(); }

}  // namespace verger::controller::redactions
