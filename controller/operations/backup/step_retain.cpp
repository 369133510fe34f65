#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/backup/repository_work.h"
#include "controller/operations/backup/step_kinds.h"

namespace verger::controller::backups {
namespace {

using nlohmann::json;
using steps::done;
using steps::not_needed;
using steps::ready;

/// Why nothing may be deleted now; empty: it may.
std::string why_kept(const StepContext& context) {
  for (const auto& source : steps::list_parameter(context.step, "after")) {
    const auto found = context.values.find(std::string(names::kMadeValue) + source);
    if (found == context.values.end()) {
      return fmt::format("no new backup of {} was made", source);
    }
    const auto generation =
        steps::parsed_or_empty(found->second).value("generation", std::string());
    if (!passed(context, names::kVerifiedValue, generation).value_or(true)) {
      return fmt::format("the new backup {} of {} is damaged", generation, source);
    }
    if (!passed(context, names::kDrilledValue, generation).value_or(true)) {
      return fmt::format("the drill of the new backup {} of {} failed", generation, source);
    }
  }
  return {};
}

class RetainStep final : public RepositoryWork {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kRetain; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    if (auto why = why_kept(context); !why.empty()) {
      auto out = not_needed({{"not_needed", why}, {"kept", why}});
      out.alert = fmt::format("no older backup was deleted, since {}", why);
      co_return out;
    }
    co_return ready();
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const auto& step = context.step;
    const auto count = [&step](std::string_view name) {
      return static_cast<std::int32_t>(steps::int_parameter(step, name, 0));
    };
    api::BackupRetainParameters parameters;
    take_target(context, parameters);
    parameters.node = steps::text_parameter(step, "of");
    parameters.keep_last = count("keepLast");
    parameters.keep_daily = count("keepDaily");
    parameters.keep_weekly = count("keepWeekly");
    parameters.keep_monthly = count("keepMonthly");
    parameters.keep_within_days = count("keepWithinDays");
    parameters.generations = steps::list_parameter(step, "generations");
    auto object = steps::parsed_or_empty(api::to_text(parameters));
    co_return co_await steps::act_through_agent(context, std::string(api::kBackupRetainKind),
                                                std::move(object));
  }

 private:
  [[nodiscard]] Verdict judge_done(const StepContext& /*context*/,
                                   const std::string& result_json) const override {
    const auto retained = api::parse_backup_result<api::BackupRetained>(result_json);
    if (!retained) {
      return unreadable_result(retained.error());
    }
    return done({{"deleted", retained->deleted},
                 {"blobs", retained->blobs},
                 {"bytes", retained->bytes},
                 {"postponed", retained->postponed}});
  }
};

}  // namespace

std::unique_ptr<StepKind> make_retain_step() { return std::make_unique<RetainStep>(); }

}  // namespace verger::controller::backups
