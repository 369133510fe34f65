#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

struct x509_st;  // X509, without OpenSSL's headers

/// What certificates say, and what servers require of a node's.
namespace verger::certificates {

/// What a certificate says of itself; nothing of it is verified.
struct CertificateInfo {
  std::string subject{};  ///< "CN=n1.example.com"
  std::string issuer{};
  std::string common_name{};
  std::string serial{};              ///< upper-case hex
  std::string fingerprint{};         ///< SHA-256, lower-case hex
  std::vector<std::string> names{};  ///< DNS names and addresses
  std::vector<std::string> uris{};   ///< among the subject's alternative names
  std::string not_before{};          ///< ISO 8601, UTC
  std::string not_after{};
  /// Of one that was served: those it was shown with, up to a root where that was among them.
  std::vector<CertificateInfo> issuers{};
};

CertificateInfo describe(const x509_st* certificate);
/// "CN=n1 (issuer CN=root, serial 0A1B, valid from 2025-01-01T00:00:00Z to 2026-01-01T00:00:00Z)"
std::string one_line(const CertificateInfo& certificate);

/// The certificates of a file, in its order: of a node's, leaf first. Errors: kNotFound, kIo;
/// kInvalidArgument: neither PEM nor DER. The message names the file.
Result<std::vector<CertificateInfo>> read_certificates(const std::string& path);

/// Whether a common name is that of a node: equal without case, or one label in place of the "*"
/// of a pattern with three labels or more. A name that is itself a wildcard is compared literally.
bool common_name_fits(std::string_view reserved, std::string_view name);
/// Names, key usages and extended usages as a node's certificate has them (node-interface.md, 4.3).
bool has_node_usages(x509_st* certificate);

}  // namespace verger::certificates
