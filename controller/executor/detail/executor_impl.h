#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "controller/executor/detail/core.h"
#include "controller/executor/executor.h"

namespace verger::controller {

namespace detail {
/// Nothing of this cluster starts or continues.
Error cluster_paused(const ClusterConfig& cluster);
}  // namespace detail

/// The runs of a controller, from plans and operators' intents: executor.cpp begins
/// and lists them, executor_intents.cpp has a person's intents.
struct Executor::Impl {
  explicit Impl(ExecutorParts parts) : core(std::make_shared<detail::Core>(std::move(parts))) {}
  std::shared_ptr<detail::Core> core;

  void launch(std::shared_ptr<detail::Run> run);
  /// Of a run that has ended, memory keeps the summary.
  static void retire(detail::Core& core, const detail::Run& run);
  [[nodiscard]] std::shared_ptr<detail::Run> active_run(std::string_view cluster) const;
  /// A run that can take an intent. Errors: kNotFound, kConflict (it has ended).
  [[nodiscard]] Result<std::shared_ptr<detail::Run>> find(std::string_view id) const;
  [[nodiscard]] Result<RunStatus> status_of(std::string_view id) const;
  Result<void> record(detail::Run& run, std::string_view type, const nlohmann::json& data);
  Result<void> pause(std::string_view id, nlohmann::json data, PauseMode mode);
  /// `data`: of the event that resumes it.
  static net::awaitable<Result<void>> resume(std::shared_ptr<Impl> impl, std::string id,
                                             nlohmann::json data);
  Result<void> load_runs();
  /// Durations of steps that this cluster's runs have seen.
  [[nodiscard]] planner::History history(std::string_view cluster) const;
  /// Of the cluster's runs: kOlderDataNoteValue.
  [[nodiscard]] std::vector<std::string> notes_on_older_data(std::string_view cluster) const;
  /// Remembers the database's identity when all agents agree on it for the first time.
  Result<void> learn_identity(const ClusterConfig& config,
                              const planner::ClusterSnapshot& snapshot);
};

}  // namespace verger::controller
