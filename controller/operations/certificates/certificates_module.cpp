#include "controller/operations/certificates/certificates_module.h"

#include "controller/operations/certificates/preflight.h"
#include "controller/operations/certificates/step_kinds.h"

namespace verger::controller::certificate_change {
namespace {

constexpr ApiSchema kSchemas[] = {
    {"CertificatesReport",
     "outcome:changed|unchanged|undone|not-restored! nodes:CertificatesOfNode[]! "
     "first_switch_at:time?! proven_at:time?! window_seconds:number! "
     "seconds_to_proof:number?! watched_seconds:number?! proofs:CertificatesProof[]! "
     "timeline:CertificatesTimeline?! notes:string[]!"},
    {"CertificatesOfNode",
     "name:string! serial_before:string! serial_after:string! not_after_before:string! "
     "not_after:string! switched:boolean! undone:boolean! reason:string! commands:string[]!"},
    {"CertificatesProof", "phase:trust|leaf|drop|restored! handshakes:integer?! proven_at:time?!"},
    {"CertificatesTimeline",
     "total_seconds:number! work_seconds:number! other_steps_seconds:number! "
     "waiting_seconds:number! preparing_seconds:number! paused_seconds:number!"},
};

void add_step_kinds(StepKinds& kinds, const std::shared_ptr<const OperationSettings>& settings) {
  kinds.add(make_obtain_step(settings));
  kinds.add(make_check_step());
  kinds.add(make_stage_step());
  kinds.add(make_switch_step());
  kinds.add(make_prove_step());
  kinds.add(make_watch_step());
}

}  // namespace

const OperationModule& certificates_module() {
  static const OperationModule kModule{.name = "certificates",
                                       .add_step_kinds = add_step_kinds,
                                       .preflight = preflight,
                                       .report = report,
                                       .report_schema = "CertificatesReport",
                                       .schemas = kSchemas};
  return kModule;
}

}  // namespace verger::controller::certificate_change
