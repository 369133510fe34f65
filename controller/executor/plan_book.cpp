#include "controller/executor/plan_book.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/by_prefix.h"
#include "controller/executor/events.h"
#include "controller/executor/plan_json.h"

namespace verger::controller {
namespace {

using nlohmann::json;

constexpr std::string_view kPlanStreams = "plan/";

std::string stream_of_plan(std::string_view hash) { return std::string(kPlanStreams).append(hash); }

Snapshot snapshot_of(const PlanSummary& plan) {
  const json summary{{"cluster", plan.cluster}, {"by", plan.made_by}, {"at", plan.made_at.value()}};
  return {stream_of_plan(plan.hash), Revision(1), summary.dump(), "{}"};
}

/// Nothing where it is not as snapshot_of wrote it.
std::optional<PlanSummary> parse_plan_summary(const Snapshot& snapshot) {
  try {
    const auto summary = json::parse(snapshot.summary);
    return PlanSummary{
        snapshot.stream.substr(kPlanStreams.size()), summary.at("cluster").get<std::string>(),
        summary.at("by").get<std::string>(), Ticks(summary.at("at").get<std::int64_t>())};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Result<void> PlanBook::load() {
  VERGER_TRY(const auto kept, journal_->current_snapshots(kPlanStreams));
  for (const auto& snapshot : kept) {
    if (auto summary = parse_plan_summary(snapshot)) {
      auto hash = summary->hash;
      plans_[std::move(hash)] = {std::move(*summary), nullptr};
    }
  }
  VERGER_TRY(const auto streams, journal_->streams(kPlanStreams));
  for (const auto& stream : streams) {
    const auto hash = stream.substr(kPlanStreams.size());
    if (!plans_.contains(hash)) {
      VERGER_TRY(const auto stored, read(hash));
      keep(stored);
    }
  }
  return {};
}

Result<StoredPlan> PlanBook::read(const std::string& hash) const {
  const auto stream = stream_of_plan(hash);
  VERGER_TRY(const auto events, journal_->read(stream, Revision(0), 1));
  const auto data = events.empty() ? json() : json::parse(events[0].data, nullptr, false);
  if (!data.is_object() || events[0].type != events::kPlanMade) {
    return Error{Errc::kCorruption, fmt::format("{}: it does not begin with a plan", stream)};
  }
  VERGER_TRY(auto plan, parse_plan(data.value("plan", json::object())));
  return StoredPlan{std::make_shared<const planner::Plan>(std::move(plan)),
                    data.value("by", std::string()), events[0].at};
}

void PlanBook::keep(const StoredPlan& stored) {
  const PlanSummary summary{stored.plan->hash, stored.plan->cluster, stored.made_by,
                            stored.made_at};
  plans_[summary.hash] = {summary, stored.plan};
  const auto saved = journal_->save_snapshot(snapshot_of(summary), epoch_);
  if (!saved) {
    log_->warning("no summary of the plan is kept; the next start reads all of it",
                  {{"plan", summary.hash}, {"reason", saved.error().message}});
  }
}

Result<StoredPlan> PlanBook::add(planner::Plan plan, std::string by, Ticks now) {
  StoredPlan stored{std::make_shared<const planner::Plan>(std::move(plan)), std::move(by), now};
  const auto& hash = stored.plan->hash;
  if (const auto found = plans_.find(hash); found != plans_.end()) {
    auto& known = found->second;
    known.plan = stored.plan;
    return StoredPlan{stored.plan, known.summary.made_by, known.summary.made_at};
  }
  StreamWriter writer(*journal_, stream_of_plan(hash), epoch_, Revision(0));
  auto text = fmt::format(R"({{"by":{},"plan":{}}})", json(stored.made_by).dump(),
                          planner::text_of(*stored.plan));
  VERGER_RETURN_IF_ERROR(writer.append({{std::string(events::kPlanMade), std::move(text)}}));
  keep(stored);
  return stored;
}

Result<StoredPlan> PlanBook::find(std::string_view hash) const {
  VERGER_TRY(const auto key,
             detail::find_by_prefix("plan", "verger plan list CLUSTER", hash, plans_));
  const auto& known = plans_.at(key);
  if (known.plan == nullptr) {
    return read(key);
  }
  return StoredPlan{known.plan, known.summary.made_by, known.summary.made_at};
}

void PlanBook::forget(std::string_view hash) {
  if (const auto found = plans_.find(hash); found != plans_.end()) {
    plans_.erase(found);
  }
}

std::vector<PlanSummary> PlanBook::list(std::string_view cluster) const {
  std::vector<PlanSummary> out;
  for (const auto& [hash, plan] : plans_) {
    if (cluster.empty() || plan.summary.cluster == cluster) {
      out.push_back(plan.summary);
    }
  }
  std::ranges::sort(out, std::greater<>(), [](const PlanSummary& each) {
    return std::pair(each.made_at, std::string_view(each.hash));
  });
  return out;
}

}  // namespace verger::controller
