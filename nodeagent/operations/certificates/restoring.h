#pragma once

#include "nodeagent/operations/certificates/certificate_desk.h"
#include "nodeagent/operations/operation.h"

namespace verger::agent {

Error no_certificates_known();

/// One look at a phase that is being restored, from any state: puts the files back, has the
/// server reload (again, where that may have been lost), and looks whether it uses them. kDone with
/// the result once it does; kFailed after kRestoreLimit. The record's memory has when it began.
net::awaitable<Observation> await_restored(CertificateDesk::Self desk, LocalNode node,
                                           OperationRecord& record, std::string change,
                                           api::CertificatePhase phase);

}  // namespace verger::agent
