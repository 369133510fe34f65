// Reading a backup: byte by byte (verify), or as a node that was restored from it (drill).
#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/backup/kept_values.h"
#include "controller/operations/backup/repository_work.h"
#include "controller/operations/backup/step_kinds.h"
#include "engine/base/clock.h"

namespace verger::controller::backups {
namespace {

using nlohmann::json;
using steps::done;
using steps::impossible;
using steps::not_needed;
using steps::ready;

/// Of those that are damaged; the agent's answer has more.
constexpr std::size_t kFilesNamed = 5;
constexpr std::string_view kFilterDirectory = "index/stream-existence/";

class CheckStep : public RepositoryWork {
 public:
  net::awaitable<ActAnswer> act(StepContext context) final {
    api::BackupCheckParameters parameters;
    take_target(context, parameters);
    parameters.generation = generation_of(context);
    parameters.by = by_of(context);
    auto object = steps::parsed_or_empty(api::to_text(parameters));
    co_return co_await steps::act_through_agent(context, std::string(kind_at_agent()),
                                                std::move(object));
  }

 private:
  [[nodiscard]] virtual std::string_view kind_at_agent() const = 0;
};

/// There is nothing to look at: the node was left out, or it is a defect.
Readiness no_backup(const StepContext& context) {
  const auto made = steps::text_parameter(context.step, "made");
  return context.skipped_nodes.contains(made)
             ? not_needed({{"not_needed", fmt::format("no backup of {} was made", made)}})
             : impossible(fmt::format("no backup of {} was made that could be read", made));
}

/// An agent that answers of another backup than it was asked about.
Verdict other_generation(const std::string& wanted, const std::string& reported) {
  return steps::verdict(
      Verdict::Kind::kFailed, "other-backup",
      fmt::format("its agent checked backup \"{}\" instead of {}", reported, wanted));
}

/// The first of each file, a few files.
std::string damage_text(const std::vector<api::DamagedFile>& damage) {
  std::vector<std::string> named;
  std::set<std::string_view> files;
  for (const auto& each : damage) {
    if (named.size() < kFilesNamed && (each.path.empty() || files.insert(each.path).second)) {
      named.push_back(each.path.empty() ? each.text : fmt::format("{}: {}", each.path, each.text));
    }
  }
  if (named.empty()) {
    return "its check did not pass";
  }
  const auto rest = damage.size() - named.size();
  return fmt::format("{}{}", fmt::join(named, "; "),
                     rest > 0 ? fmt::format(" and {} more", rest) : std::string());
}

/// A filter that lacks streams is the node's own, so a full backup has it, too.
std::string damage_remedy(const StepContext& context, const std::vector<api::DamagedFile>& damage) {
  const bool is_filter =
      !damage.empty() && std::ranges::all_of(damage, [](const api::DamagedFile& each) {
        return each.path.starts_with(kFilterDirectory);
      });
  return is_filter ? fmt::format(
                         "where streams are missing in it, first heal the node (verger heal {} "
                         "--existence-filter); make another backup, and keep the older ones",
                         context.cluster.name)
                   : "make a full backup, and keep the older ones";
}

class VerifyStep final : public CheckStep {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kVerify; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    co_return generation_of(context).empty() ? no_backup(context) : ready();
  }

 private:
  [[nodiscard]] std::string_view kind_at_agent() const override { return api::kBackupVerifyKind; }

  [[nodiscard]] Verdict judge_done(const StepContext& context,
                                   const std::string& result_json) const override {
    const auto verified = api::parse_backup_result<api::BackupVerified>(result_json);
    if (!verified) {
      return unreadable_result(verified.error());
    }
    const auto wanted = generation_of(context);
    if (verified->generation != wanted) {
      return other_generation(wanted, verified->generation);
    }
    auto damage = json::array();
    for (const auto& each : verified->damage) {
      damage.push_back({{"path", each.path}, {"text", each.text}});
    }
    json result{{"generation", verified->generation},
                {"passed", verified->passed},
                {"bytes", verified->bytes},
                {"duration_ms", verified->duration_ms},
                {"damage", std::move(damage)}};
    if (!verified->passed) {
      result[std::string(kDifferences)] = {fmt::format("backup {} is damaged: {}; {}", wanted,
                                                       damage_text(verified->damage),
                                                       damage_remedy(context, verified->damage))};
    }
    auto out = done(result);
    keep_passed(out, names::kVerifiedValue, wanted, verified->passed);
    return out;
  }
};

class DrillStep final : public CheckStep {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kDrill; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto generation = generation_of(context);
    if (generation.empty()) {
      co_return no_backup(context);
    }
    if (!passed(context, names::kVerifiedValue, generation).value_or(true)) {
      co_return not_needed(
          {{"not_needed", fmt::format("backup {} is known to be damaged", generation)}});
    }
    co_return ready();
  }

 private:
  [[nodiscard]] std::string_view kind_at_agent() const override { return api::kBackupDrillKind; }

  [[nodiscard]] Verdict judge_done(const StepContext& context,
                                   const std::string& result_json) const override {
    const auto drilled = api::parse_backup_result<api::BackupDrilled>(result_json);
    if (!drilled) {
      return unreadable_result(drilled.error());
    }
    const auto wanted = generation_of(context);
    if (drilled->generation != wanted) {
      return other_generation(wanted, drilled->generation);
    }
    json result{{"generation", drilled->generation},
                {"passed", drilled->passed},
                {"restore_ms", drilled->restore_ms},
                {"start_ms", drilled->start_ms},
                {"read_ms", drilled->read_ms},
                {"end_position", drilled->end_position},
                {"age_ms", drilled->age_ms},
                {"streams", drilled->streams},
                {"events", drilled->events},
                {"logical_equal", drilled->logical_equal},
                {"readable_equal", drilled->readable_equal},
                {"summary", drilled->summary}};
    if (!drilled->passed) {
      result[std::string(kDifferences)] = {fmt::format(
          "the drill of backup {} failed: {}; do not rely on it, and make a full backup", wanted,
          drilled->summary)};
    }
    auto out = done(result);
    keep_passed(out, names::kDrilledValue, wanted, drilled->passed);
    if (drilled->passed) {
      out.values[std::string(kDrillKept)] =
          json{{"at", format_ticks(context.now)},
               {"generation", wanted},
               {"seconds", (drilled->restore_ms + drilled->start_ms + drilled->read_ms) / 1'000}}
              .dump();
    }
    return out;
  }
};

}  // namespace

std::unique_ptr<StepKind> make_verify_step() { return std::make_unique<VerifyStep>(); }
std::unique_ptr<StepKind> make_drill_step() { return std::make_unique<DrillStep>(); }

}  // namespace verger::controller::backups
