#include "controller/operations/operation_modules.h"

#include <algorithm>

#include "controller/executor/executor.h"
#include "controller/executor/run_snapshot.h"
#include "controller/executor/step_kinds.h"
#include "controller/operations/backup/backup_module.h"
#include "controller/operations/certificates/certificates_module.h"
#include "controller/operations/growth/growth_module.h"
#include "controller/operations/heal/heal_module.h"
#include "controller/operations/redaction/redaction_module.h"
#include "controller/operations/resize/resize_module.h"
#include "controller/operations/restore/restore_module.h"
#include "controller/operations/scavenge/scavenge_module.h"
#include "controller/operations/verify/verify_module.h"

namespace verger::controller {

// One line for each operation.
std::span<const OperationModule* const> operation_modules() {
  static const OperationModule* const kModules[] = {
      &scavenge::scavenge_module(),  //
      &certificate_change::certificates_module(),
      &backups::backup_module(),
      &cluster_restore::restore_module(),
      &growth::growth_module(),
      &redactions::redaction_module(),
      &verifications::verify_module(),
      &healing::heal_module(),
      &resize::resize_module(),
  };
  return kModules;
}

const OperationModule* find_operation_module(std::string_view name) {
  const auto found =
      std::ranges::find(operation_modules(), name, [](const auto* each) { return each->name; });
  return found == operation_modules().end() ? nullptr : *found;
}

StepKinds standard_step_kinds(const std::shared_ptr<const OperationSettings>& settings) {
  StepKinds kinds;
  add_common_step_kinds(kinds);
  for (const auto* module : operation_modules()) {
    module->add_step_kinds(kinds, settings);
    if (module->preflight != nullptr) {
      kinds.add_preflight(std::string(module->name), [module, settings](PreflightContext context) {
        return module->preflight(std::move(context), settings);
      });
    }
  }
  return kinds;
}

std::vector<std::map<std::string, std::string>> kept_by_runs_of(const Executor& executor,
                                                                std::string_view cluster) {
  std::vector<std::map<std::string, std::string>> out;
  for (const auto& run : executor.runs(cluster)) {
    out.push_back(run->kept);
  }
  return out;
}

}  // namespace verger::controller
