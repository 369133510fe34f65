#include "controller/operations/restore/restore_module.h"

#include "controller/operations/restore/preflight.h"
#include "controller/operations/restore/step_kinds.h"

namespace verger::controller::cluster_restore {
namespace {

constexpr ApiSchema kSchemas[] = {
    {"RestoreReport",
     "outcome:restored|started|undone|not-undone|unchanged|discarded! generation:string! "
     "end_position:integer! committed_at:time?! leader:string! "
     "nodes:RestoreOfNode[]! timeline:RestoreTimeline?! notes:string[]!"},
    {"RestoreOfNode",
     "name:string! state:restored|undone|not-undone|untouched|discarded! bytes:integer?! "
     "seconds:number?! log_before:integer?! lost_bytes:integer?! old_files:string! "
     "discarded_bytes:integer?! reason:string! commands:string[]!"},
    {"RestoreTimeline",
     "total_seconds:number! work_seconds:number! other_steps_seconds:number! "
     "waiting_seconds:number! preparing_seconds:number! paused_seconds:number!"},
};

void add_step_kinds(StepKinds& kinds,
                    const std::shared_ptr<const OperationSettings>& /*settings*/) {
  kinds.add(make_prepare_step());
  kinds.add(make_stop_step());
  kinds.add(make_restore_step());
  kinds.add(make_commit_step());
  kinds.add(make_check_step());
  kinds.add(make_discard_step());
}

}  // namespace

const OperationModule& restore_module() {
  static const OperationModule kModule{.name = "restore",
                                       .add_step_kinds = add_step_kinds,
                                       .preflight = preflight,
                                       .report = report,
                                       .report_schema = "RestoreReport",
                                       .schemas = kSchemas};
  return kModule;
}

}  // namespace verger::controller::cluster_restore
