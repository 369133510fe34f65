#include "controller/operations/redaction/redaction_module.h"

#include "controller/operations/redaction/preflight.h"
#include "controller/operations/redaction/step_kinds.h"

namespace verger::controller::redactions {
namespace {

constexpr ApiSchema kSchemas[] = {
    {"RedactionReport",
     "outcome:redacted|not-proven|unfinished|unchanged! requester:string! reason:string! "
     "metadata:boolean! events:RedactedEvent[]! list:string! nodes:RedactionOfNode[]! "
     "backups:RedactionBackup[]! backups_seen:boolean! problems:string[]! out_of_reach:string[]! "
     "timeline:RedactionTimeline?! notes:string[]!"},
    {"RedactedEvent", "stream:string! number:integer! position:integer! digest:string!"},
    {"RedactionOfNode",
     "node:string! state:redacted|already|not-done! proven:boolean! records:integer! "
     "blanked:integer! already:integer! read_blank:integer! missing:string[]! "
     "chunks:RedactedChunk[]! "
     "removed:string[]! texts:integer! unsearchable:integer! searched_files:integer! "
     "searched_bytes:integer! left:string[]! online:boolean! way:string! read_back:integer! "
     "search_rounds:integer! changing:string[]! held_searched:integer! confirmed:boolean! "
     "seconds:number!"},
    {"RedactedChunk",
     "from:string! to:string! records:integer! md5_before:string! md5_after:string! "
     "digest_before:string digest_after:string"},
    {"RedactionBackup",
     "generation:string! node:string! repository:string! started_at:time?! "
     "end_position:integer?! command:string! expired:boolean!"},
    {"RedactionTimeline",
     "total_seconds:number! work_seconds:number! other_steps_seconds:number! "
     "waiting_seconds:number! preparing_seconds:number! paused_seconds:number!"},
};

void add_step_kinds(StepKinds& kinds, const std::shared_ptr<const OperationSettings>& settings) {
  kinds.add(make_check_step());
  kinds.add(make_agree_step());
  kinds.add(make_redact_step());
  kinds.add(make_online_redact_step());
  kinds.add(make_confirm_step());
  kinds.add(make_redact_again_step(settings));
  kinds.add(make_backups_step());
  kinds.add(make_expire_step());
}

}  // namespace

const OperationModule& redaction_module() {
  static const OperationModule kModule{.name = "redaction",
                                       .add_step_kinds = add_step_kinds,
                                       .preflight = preflight,
                                       .report = report,
                                       .report_schema = "RedactionReport",
                                       .schemas = kSchemas};
  return kModule;
}

}  // namespace verger::controller::redactions
