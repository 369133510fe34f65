#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/base/types.h"
#include "nodeagent/certificates/openssl.h"

/// The parts that certificates and requests are put together from. Errors: kInvalidArgument.
namespace verger::certificates {

std::time_t unix_of(Ticks time);
/// Version 3, a random serial number of 16 bytes, the dates, the key.
Result<Certificate> begin_certificate(EVP_PKEY* key, Ticks from, Ticks until);
Result<void> set_common_name(X509_NAME* name, const std::string& text);
/// `value` as OpenSSL's configuration has it: "critical,CA:TRUE".
Result<void> add_extension(X509* to, X509* issuer, int kind, const char* value);

/// A host's name or address. An error where it is neither.
Result<void> add_host(GENERAL_NAMES* to, const std::string& host);
/// A DNS name, which may begin with "*.".
Result<void> add_dns_name(GENERAL_NAMES* to, const std::string& name);
Result<void> add_address(GENERAL_NAMES* to, const std::string& address);
Result<void> add_uri(GENERAL_NAMES* to, const std::string& uri);
/// No extension where there are no names.
Result<void> add_alternative_names(X509* to, const GENERAL_NAMES* names);

/// The key of a request, which must have signed it. An error where it is weaker than EC P-256 or
/// RSA 2048.
Result<EVP_PKEY*> key_of(X509_REQ* request);

}  // namespace verger::certificates
