#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "nodeagent/certificates/certificate_info.h"

namespace verger::certificates {

/// What an operator wants to know of a certificate. Nothing of it is verified.
struct CertificateDetails {
  CertificateInfo info{};
  std::string thumbprint{};  ///< SHA-1, upper-case hex, as servers log it
  std::string key{};         ///< "RSA 2048"
  std::string signature{};   ///< "sha256WithRSAEncryption"
  bool is_authority = false;
  bool is_self_signed = false;
  std::vector<std::string> usages{};           ///< "digitalSignature"
  std::vector<std::string> extended_usages{};  ///< "serverAuth"; empty: no such extension
  bool is_node = false;                        ///< has names and usages as a node's certificate
};

/// All certificates of a PEM text, or the one of a DER file. Error: kInvalidArgument.
Result<std::vector<CertificateDetails>> read_details(std::string_view text);

}  // namespace verger::certificates
