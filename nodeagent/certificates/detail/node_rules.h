#pragma once

#include <string>
#include <vector>

#include "nodeagent/certificates/openssl.h"

/// What other nodes check of a node's certificate (node-interface.md, 4.3).
namespace verger::certificates {

/// Those of `addresses` (names and IP addresses, without ports) that the certificate does not fit.
std::vector<std::string> addresses_not_covered(X509* certificate,
                                               const std::vector<std::string>& addresses);
bool has_server_usage(X509* certificate);
bool has_client_usage(X509* certificate);
/// digitalSignature, and keyEncipherment or keyAgreement.
bool has_key_usage(X509* certificate);

}  // namespace verger::certificates
