#include "controller/operations/backup/backup_module.h"

#include "controller/operations/backup/preflight.h"
#include "controller/operations/backup/step_kinds.h"

namespace verger::controller::backups {
namespace {

constexpr ApiSchema kSchemas[] = {
    {"BackupReport",
     "outcome:done|damaged|drill-failed|unfinished! backups:BackupOfNode[]! "
     "verified:BackupVerification[]! drilled:BackupDrill[]! deleted:string[]! "
     "freed_bytes:integer! scavenges:BackupScavenge[]! timeline:BackupTimeline?! notes:string[]!"},
    {"BackupOfNode",
     "node:string! generation:string! parent:string! state:string! started_at:time?! "
     "checkpoints_at:time?! finished_at:time?! end_position:integer?! epoch_number:integer?! "
     "files:integer! stored_bytes:integer! restored_bytes:integer! reused_bytes:integer! "
     "seconds:number! bytes_per_second:integer?! logical_digest:string! readable_digest:string! "
     "warnings:string[]!"},
    {"BackupVerification",
     "node:string! generation:string! passed:boolean! bytes:integer! duration_ms:integer! "
     "damage:BackupDamage[]!"},
    {"BackupDamage", "path:string! text:string!"},
    {"BackupDrill",
     "node:string! generation:string! passed:boolean! restore_ms:integer! start_ms:integer! "
     "read_ms:integer! end_position:integer! age_ms:integer! streams:integer! events:integer! "
     "logical_equal:boolean! readable_equal:boolean! summary:string!"},
    {"BackupScavenge", "node:string! scavenge_id:string! held_at:time?! continued:boolean!"},
    {"BackupTimeline",
     "total_seconds:number! work_seconds:number! other_steps_seconds:number! "
     "waiting_seconds:number! preparing_seconds:number! paused_seconds:number!"},
};

void add_step_kinds(StepKinds& kinds,
                    const std::shared_ptr<const OperationSettings>& /*settings*/) {
  kinds.add(make_create_step());
  kinds.add(make_verify_step());
  kinds.add(make_drill_step());
  kinds.add(make_retain_step());
  kinds.add(make_hold_step());
  kinds.add(make_release_step());
}

}  // namespace

const OperationModule& backup_module() {
  static const OperationModule kModule{.name = "backup",
                                       .add_step_kinds = add_step_kinds,
                                       .preflight = preflight,
                                       .report = report,
                                       .metrics = metrics,
                                       .report_schema = "BackupReport",
                                       .schemas = kSchemas};
  return kModule;
}

}  // namespace verger::controller::backups
