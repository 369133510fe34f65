#pragma once

#include <memory>

#include "controller/executor/step_kind.h"

/// The kinds of steps of a backup. Parameters, results and values: planner/backup/backup_steps.h.
namespace verger::controller::backups {

std::unique_ptr<StepKind> make_create_step();
std::unique_ptr<StepKind> make_verify_step();
std::unique_ptr<StepKind> make_drill_step();
std::unique_ptr<StepKind> make_retain_step();
std::unique_ptr<StepKind> make_hold_step();
std::unique_ptr<StepKind> make_release_step();

}  // namespace verger::controller::backups
