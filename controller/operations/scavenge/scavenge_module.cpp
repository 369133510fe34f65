#include "controller/operations/scavenge/scavenge_module.h"

#include "controller/operations/scavenge/preflight.h"
#include "controller/operations/scavenge/step_kinds.h"

namespace verger::controller::scavenge {
namespace {

constexpr ApiSchema kSchemas[] = {
    {"ScavengeReport",
     "point:Point?! nodes:ReportOfNode[]! planned_leader_moves:integer! "
     "unplanned_leader_moves:integer! timeline:ScavengeTimeline?! digests_equal:boolean?! "
     "readable_equal:boolean?! same_point:boolean?! readable_unchanged:boolean?! "
     "differences:string[]! notes:string[]!"},
    {"ScavengeTimeline",
     "total_seconds:number! work_seconds:number! scavenge_seconds:number! "
     "other_steps_seconds:number! waiting_seconds:number! preparing_seconds:number! "
     "paused_seconds:number!"},
    {"ReportOfNode",
     "name:string! point:Point?! bytes_before:integer?! bytes_after:integer?! "
     "chunks_compared:integer?! way:server|online|offline! chunks_switched:integer?! "
     "space_saved:integer?! records_removed:integer?! "
     "logical_digest:string?! readable_digest:string?! readable_digest_before:string?!"},
};

void add_step_kinds(StepKinds& kinds,
                    const std::shared_ptr<const OperationSettings>& /*settings*/) {
  kinds.add(make_scavenge_step());
  kinds.add(make_scavenge_point_step());
  kinds.add(make_offline_scavenge_step());
  kinds.add(make_online_scavenge_step());
  kinds.add(make_pause_auto_scavenge_step());
  kinds.add(make_resume_auto_scavenge_step());
  kinds.add(make_record_digest_step());
  kinds.add(make_digest_step());
  kinds.add(make_compare_digests_step());
}

}  // namespace

const OperationModule& scavenge_module() {
  static const OperationModule kModule{.name = "scavenge",
                                       .add_step_kinds = add_step_kinds,
                                       .preflight = preflight,
                                       .report = report,
                                       .report_schema = "ScavengeReport",
                                       .schemas = kSchemas};
  return kModule;
}

}  // namespace verger::controller::scavenge
