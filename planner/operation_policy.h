#pragma once

#include <string>
#include <variant>

#include "planner/backup/backup_policy.h"
#include "planner/certificates/certificates_policy.h"
#include "planner/growth/growth_policy.h"
#include "planner/heal/heal_policy.h"
#include "planner/json.h"
#include "planner/redaction/redaction_policy.h"
#include "planner/resize/resize_policy.h"
#include "planner/restore/restore_policy.h"
#include "planner/scavenge/scavenge_policy.h"
#include "planner/verify/verify_policy.h"

namespace verger::planner {

/// Of a newer controller: nothing can be planned with it, but what was journaled keeps its content
/// and its hash.
struct UnknownOperation {
  std::string name;
  Json content;
};

/// The table of operations: what each has for itself, one alternative each, with its Operation as
/// the static function `operation`. The first is what a policy is about that does not say; the last
/// is none.
using OperationPolicy =
    std::variant<ScavengePolicy, CertificatesPolicy, BackupPolicy, RestorePolicy, GrowthPolicy,
                 RedactionPolicy, ResizePolicy, VerifyPolicy, HealPolicy, UnknownOperation>;

}  // namespace verger::planner
