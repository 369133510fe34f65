#include "controller/operations/certificates/certificates_module.h"

namespace verger::controller::certificate_change {
namespace {

constexpr ApiSchema kSchemas[] = {
    {"CertificatesReport", "timeline:CertificatesTimeline?!"},
    {"CertificatesTimeline",
     "total_seconds:number! work_seconds:number! other_steps_seconds:number! "
     "waiting_seconds:number! preparing_seconds:number! paused_seconds:number!"},
};

void add_step_kinds(StepKinds& /*kinds*/,
                    const std::shared_ptr<const OperationSettings>& /*settings*/) {}

nlohmann::json report(const RunState& /*run*/, nlohmann::json timeline) {
  return {{"timeline", std::move(timeline)}};
}

}  // namespace

const OperationModule& certificates_module() {
  static const OperationModule kModule{.name = "certificates",
                                       .add_step_kinds = add_step_kinds,
                                       .preflight = nullptr,
                                       .report = report,
                                       .report_schema = "CertificatesReport",
                                       .schemas = kSchemas};
  return kModule;
}

}  // namespace verger::controller::certificate_change
