#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/types.h"

/// Certificates for servers' clusters: authorities, nodes and users, with the extensions that
/// servers require (node-interface.md, 4.3). All texts are PEM. Nothing here reads or writes files.
/// Errors: kInvalidArgument, for a person.
namespace verger::certificates {

inline constexpr std::string_view kNodeCommonName = "eventstoredb-node";

enum class CertificateKind : std::uint8_t {
  kRoot,          ///< self-signed
  kIntermediate,  ///< an authority that another one has signed; issues leaves alone
  kNode,          ///< server and client
  kUser,          ///< client; the common name is the user
};

/// What a new certificate is to say.
struct CertificateTerms {
  CertificateKind kind = CertificateKind::kNode;
  std::string common_name{};
  std::vector<std::string> dns_names{};  ///< each may begin with "*."
  std::vector<std::string> ip_addresses{};
  Ticks not_before{};
  Ticks not_after{};
};

struct NewCertificate {
  /// Leaf first, then the intermediates between it and the root.
  std::string certificates{};
  std::string serial{};  ///< upper-case hex
  Ticks not_before{};
  Ticks not_after{};
  bool ends_with_authority = false;  ///< earlier than the terms say: nothing outlives its issuer
};

/// An authority's certificate, the intermediates between it and its root where there are any, and
/// its key.
struct SigningAuthority {
  std::string certificates{};
  std::string key{};
  std::string key_password{};
};

/// A request for a certificate of these terms, signed by `key`. The dates are the issuer's to say.
Result<std::string> make_request(std::string_view key, const std::string& key_password,
                                 const CertificateTerms& terms);
/// What a request says: the kind is not among it. Its signature is checked.
Result<CertificateTerms> terms_of_request(std::string_view request);
/// Those of which `certificate`, the first of its text, was made: to renew it. The dates are its
/// own.
Result<CertificateTerms> terms_of_certificate(std::string_view certificate);

/// A common name for a new authority that no other one has: "Verger CA 6F0C11A2".
std::string new_authority_name(CertificateKind kind);

/// A root, signed by its own key.
Result<NewCertificate> make_root(std::string_view key, const std::string& key_password,
                                 const CertificateTerms& terms);
/// A certificate for the key in `request`, from which nothing else is taken. An error, too, where
/// the authority's certificate is none of an authority, is not of its key, or ends before `terms`
/// begin.
Result<NewCertificate> issue(std::string_view request, const CertificateTerms& terms,
                             const SigningAuthority& by);

}  // namespace verger::certificates
