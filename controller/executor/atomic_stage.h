#pragma once

#include <string>

#include "controller/executor/run_state.h"

/// Stages that are done on all of their nodes or on none (planner::Stage::atomic).
namespace verger::controller {

/// The stage is atomic, and one of its steps has acted or may have: neither a pause nor the end of
/// the hours stops it.
bool must_finish(const RunState& run, const planner::Stage& stage);

/// A node of an atomic stage that the run leaves out, so that the stage must not be done at all;
/// nullptr: there is none, or the stage is not atomic.
const std::string* left_out_of(const RunState& run, const planner::Stage& stage);

/// For people, of a run that is to pause: after which stage that takes effect, and by when that is
/// expected. Empty: it does so as always.
std::string pause_notice(const RunState& run, Ticks now);

}  // namespace verger::controller
