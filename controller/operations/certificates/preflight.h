#pragma once

#include <memory>

#include "controller/operations/operation_module.h"

namespace verger::controller::certificate_change {

/// Looks at every node: its agent, its files, its new files, a handshake; asks the authority that
/// is to sign for trial certificates. Errors of the check are refusals, its warnings notes; facts
/// are planner::CertificateFacts.
net::awaitable<planner::Preflight> preflight(PreflightContext context,
                                             std::shared_ptr<const OperationSettings> settings);

}  // namespace verger::controller::certificate_change
