#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "nodeagent/daemon/agent_options.h"
#include "nodeagent/operations/certificates/certificate_access.h"

namespace verger::agent {

/// How the agent reaches its node's certificates, by the options of the node; what concerns the
/// process (signal, own connections) is for the caller to add. Null: --certificate-file is not
/// given.
std::shared_ptr<CertificateAccess> certificate_access(const ProgramOptions& options,
                                                      net::any_io_executor executor);

/// SIGHUP to a process. Errors: kUnavailable: there is none; kRefused: it is another user's.
Result<void> send_hangup(std::int64_t process);

}  // namespace verger::agent
