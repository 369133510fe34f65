#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"
#include "nodeagent/api/backup_operations.h"
#include "planner/backup/backup_steps.h"

/// What the steps of a backup share.
namespace verger::controller::backups {

namespace names = planner::backup_steps;

/// A step that one operation of its node's agent carries out, as long as that takes. A pause and
/// the end of the hours stop it where the policy says so; what was done is kept, and the next
/// attempt is shorter.
class RepositoryWork : public StepKind {
 public:
  net::awaitable<Verdict> observe(StepContext context) final;
  [[nodiscard]] bool waits_for_agent(const StepContext&) const final { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext& context, Interrupt why) const final;
  net::awaitable<void> interrupt(StepContext context) final;

 private:
  /// Of an operation that the agent reports as done.
  [[nodiscard]] virtual Verdict judge_done(const StepContext& context,
                                           const std::string& result_json) const = 0;
};

/// Fills in which repository the step is about, and how gently its job begins.
void take_target(const StepContext& context, api::BackupTarget& target);

/// The generation that the step is about: a parameter, or what an earlier step made; empty: that
/// made none.
std::string generation_of(const StepContext& context);
/// "vergerd, run ID": for the record of a check.
std::string by_of(const StepContext& context);

/// Member `passed` of the value of a generation; nullopt: it was not looked at in this run.
std::optional<bool> passed(const StepContext& context, std::string_view prefix,
                           std::string_view generation);
/// Leaves it for later steps.
void keep_passed(Verdict& verdict, std::string_view prefix, std::string_view generation,
                 bool passed);

/// A result that is none: the agent is asked again, and then by a new attempt.
Verdict unreadable_result(const Error& error);

}  // namespace verger::controller::backups
