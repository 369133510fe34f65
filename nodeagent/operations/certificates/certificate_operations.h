#pragma once

#include <memory>
#include <vector>

#include "nodeagent/operations/certificates/certificate_desk.h"
#include "nodeagent/operations/operation.h"

/// What an agent does for a change of its node's certificates. Parameters and results:
/// nodeagent/api/agent_certificates.h. `desk` is null where the agent knows no certificates: then
/// all of them are refused.
namespace verger::agent {

/// certificate_stage: copies the new files beside the present ones, and these as well, durably. A
/// crash or an error leaves nothing of it. Codes: those of errors.
std::unique_ptr<Operation> make_certificate_stage_operation(CertificateDesk::Self desk);
/// certificate_discard: removes what was staged; the undo of it.
std::unique_ptr<Operation> make_certificate_discard_operation(CertificateDesk::Self desk);
/// certificate_switch: renames the files of a phase, has the server reload, and is done once new
/// connections show that it uses them (certificate_proof.h). A server that does not within
/// kSwitchLimit gets its former files back, is reloaded and seen with them; then the code is
/// "no_effect". The same after a restart of the agent in the middle, unless the server is seen with
/// the new files by then (code "interrupted"): a controller continues only from a switch that it
/// saw done, so what was before is always the safe side. "not_restored": neither could be shown; an
/// operator has to look. "undone": certificate_restore took over.
std::unique_ptr<Operation> make_certificate_switch_operation(CertificateDesk::Self desk);
/// certificate_restore: brings back the files before a phase, byte by byte, with mode and owner,
/// has the server reload, and is done once new connections show it. Nothing to restore is done.
/// Codes: "conflict" (someone else replaced a file since: it is left), "not_restored", "no_answer"
/// (the files are back, and the server does not answer; it uses them once it starts).
std::unique_ptr<Operation> make_certificate_restore_operation(CertificateDesk::Self desk);

/// All of these.
std::vector<std::unique_ptr<Operation>> certificate_operations(const CertificateDesk::Self& desk);

/// How long a server may take to use new files. Only its log says why one does not; it took half a
/// second at most where it did (node-interface.md, 4.5).
inline constexpr std::chrono::seconds kSwitchLimit{15};
/// The same for those it had before; it may just be starting.
inline constexpr std::chrono::seconds kRestoreLimit{120};

}  // namespace verger::agent
