#include "controller/operations/growth/growth_module.h"

#include "controller/operations/growth/preflight.h"
#include "controller/operations/growth/step_kinds.h"

namespace verger::controller::growth {
namespace {

constexpr ApiSchema kSchemas[] = {
    {"GrowthReport",
     "outcome:joined|not-registered|undone|not-undone|unchanged! node:string! role:string! "
     "replaces:string! generation:string! bytes:integer?! restore_seconds:number?! "
     "end_position:integer?! writer:integer?! leader:string! reason:string! commands:string[]! "
     "timeline:GrowthTimeline?! notes:string[]!"},
    {"GrowthTimeline",
     "total_seconds:number! work_seconds:number! other_steps_seconds:number! "
     "waiting_seconds:number! preparing_seconds:number! paused_seconds:number!"},
};

/// Those that restore the files are the restore's.
void add_step_kinds(StepKinds& kinds,
                    const std::shared_ptr<const OperationSettings>& /*settings*/) {
  kinds.add(make_join_start_step());
  kinds.add(make_join_register_step());
}

}  // namespace

const OperationModule& growth_module() {
  static const OperationModule kModule{.name = "growth",
                                       .add_step_kinds = add_step_kinds,
                                       .preflight = preflight,
                                       .report = report,
                                       .report_schema = "GrowthReport",
                                       .schemas = kSchemas};
  return kModule;
}

}  // namespace verger::controller::growth
