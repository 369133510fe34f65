#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controller/cli/cert/cert_files.h"
#include "engine/base/result.h"
#include "engine/base/types.h"
#include "nodeagent/certificates/issuing.h"

namespace verger::cli {

/// One certificate to make, as `verger cert create-...` and a batch's entries say it. What is empty
/// has the default of its kind.
struct NewCertificateOptions {
  certificates::CertificateKind kind = certificates::CertificateKind::kNode;
  std::string out{};   ///< directory
  std::string name{};  ///< of its files, without extension
  std::optional<int> days{};
  std::string ca_certificate{};
  std::string ca_key{};
  PasswordSource ca_key_password{};
  std::string key_type{};
  PasswordSource key_password{};  ///< to encrypt the new key with
  std::string common_name{};
  std::vector<std::string> ip_addresses{};
  std::vector<std::string> dns_names{};
  int skew_minutes = 5;  ///< so long before now the certificate begins to be valid
  bool force = false;
  bool csr_only = false;             ///< key and request, for another authority to sign
  std::string csr{};                 ///< a request whose key the certificate is for
  std::string key{};                 ///< an existing key that is used again
  PasswordSource pkcs12_password{};  ///< given: NAME.p12, too
};

struct MadeCertificate {
  std::vector<std::string> files{};
  std::string common_name{};
  std::optional<certificates::NewCertificate> certificate{};  ///< nullopt: a request alone
};

/// With its defaults. Errors: kInvalidArgument: options that contradict each other.
Result<NewCertificateOptions> completed(NewCertificateOptions options);
/// The files that make_certificate of completed options writes, without their directory.
std::vector<std::string> files_of(const NewCertificateOptions& options);
/// Makes and writes it. Errors: kExists: nothing was replaced; kInvalidArgument; kIo.
Result<MadeCertificate> make_certificate(const NewCertificateOptions& options, Ticks now);

/// A certificate anew, with the names, the lifetime and the kind of key that it has.
struct RenewOptions {
  std::string certificate{};
  bool reuse_key = false;        ///< that beside the certificate, or made.key
  NewCertificateOptions made{};  ///< what is empty or 0 is the old certificate's
};
/// Into the folder "renewed" beside it, where made.out is empty. Errors as make_certificate.
Result<MadeCertificate> renew_certificate(RenewOptions options, Ticks now);

}  // namespace verger::cli
