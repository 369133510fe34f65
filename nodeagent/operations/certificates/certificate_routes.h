#pragma once

#include "nodeagent/http/router.h"
#include "nodeagent/operations/certificates/certificate_desk.h"

namespace verger::agent {

/// GET /agent/v1/certificates and the POST routes below it (nodeagent/api/agent_certificates.h).
/// `desk` is null where the agent knows no certificates: then they answer 404 `not_found`.
void add_certificate_routes(http::Router& router, CertificateDesk::Self desk);

}  // namespace verger::agent
