#include "controller/operations/heal/heal_module.h"

#include "controller/operations/heal/step_kinds.h"

namespace verger::controller::healing {
namespace {

constexpr ApiSchema kSchemas[] = {
    {"HealReport",
     "outcome:healed|not-proven|unfinished|unchanged! nodes:HealedNode[]! timeline:HealTimeline?! "
     "notes:string[]!"},
    {"HealedNode",
     "node:string! state:healed|not-done! lost_before:integer! lost_after:integer! "
     "streams_read:integer! not_found:string[]! seconds:number!"},
    {"HealTimeline",
     "total_seconds:number! work_seconds:number! other_steps_seconds:number! "
     "waiting_seconds:number! preparing_seconds:number! paused_seconds:number!"},
};

void add_step_kinds(StepKinds& kinds,
                    const std::shared_ptr<const OperationSettings>& /*settings*/) {
  kinds.add(make_heal_filter_step());
}

}  // namespace

const OperationModule& heal_module() {
  static const OperationModule kModule{.name = "heal",
                                       .add_step_kinds = add_step_kinds,
                                       .report = report,
                                       .report_schema = "HealReport",
                                       .schemas = kSchemas};
  return kModule;
}

}  // namespace verger::controller::healing
