#include "controller/operations/verify/verify_module.h"

#include "controller/operations/verify/step_kinds.h"

namespace verger::controller::verifications {
namespace {

constexpr ApiSchema kSchemas[] = {
    {"VerifyReport",
     "outcome:sound|damaged|unfinished! nodes:VerifiedNode[]! timeline:VerifyTimeline?! "
     "notes:string[]!"},
    {"VerifiedNode",
     "node:string! state:sound|damaged|not-looked-at! reason:string! chunk_files:integer! "
     "chunk_bytes:integer! records:integer! tables:integer! entries:integer! "
     "missing_streams:integer! damaged:integer! damage:FoundDamage[]! remedies:string[]! "
     "notes:string[]! seconds:number!"},
    {"FoundDamage", "file:string! offset:integer?! text:string! remedy:string!"},
    {"VerifyTimeline",
     "total_seconds:number! work_seconds:number! other_steps_seconds:number! "
     "waiting_seconds:number! preparing_seconds:number! paused_seconds:number!"},
};

void add_step_kinds(StepKinds& kinds,
                    const std::shared_ptr<const OperationSettings>& /*settings*/) {
  kinds.add(make_verify_step());
}

}  // namespace

const OperationModule& verify_module() {
  static const OperationModule kModule{.name = "verify",
                                       .add_step_kinds = add_step_kinds,
                                       .report = report,
                                       .report_schema = "VerifyReport",
                                       .schemas = kSchemas};
  return kModule;
}

}  // namespace verger::controller::verifications
