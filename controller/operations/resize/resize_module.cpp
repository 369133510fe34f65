#include "controller/operations/resize/resize_module.h"

#include "controller/operations/resize/preflight.h"
#include "controller/operations/resize/step_kinds.h"

namespace verger::controller::resize {
namespace {

constexpr ApiSchema kSchemas[] = {
    {"ResizeReport",
     "outcome:resized|not-registered|undone|not-undone|unchanged! from:integer! to:integer! "
     "joined:string[]! left:string[]! generation:string! leader:string! reason:string! "
     "commands:string[]! restarts:ResizeRestart[]! timeline:ResizeTimeline?! notes:string[]!"},
    {"ResizeRestart", "node:string! size:integer! seeds:string!"},
    {"ResizeTimeline",
     "total_seconds:number! work_seconds:number! other_steps_seconds:number! "
     "waiting_seconds:number! preparing_seconds:number! paused_seconds:number!"},
};

/// Those that restore files are the restore's.
void add_step_kinds(StepKinds& kinds,
                    const std::shared_ptr<const OperationSettings>& /*settings*/) {
  kinds.add(make_size_step());
  kinds.add(make_settled_step());
  kinds.add(make_voter_start_step());
  kinds.add(make_voter_follows_step());
  kinds.add(make_leave_step());
  kinds.add(make_commit_step());
}

}  // namespace

const OperationModule& resize_module() {
  static const OperationModule kModule{.name = "resize",
                                       .add_step_kinds = add_step_kinds,
                                       .preflight = preflight,
                                       .report = report,
                                       .report_schema = "ResizeReport",
                                       .schemas = kSchemas};
  return kModule;
}

}  // namespace verger::controller::resize
