#include "nodeagent/certificates/certificate_details.h"

#include <array>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <utility>

#include "nodeagent/certificates/key.h"
#include "nodeagent/certificates/openssl.h"

namespace verger::certificates {
namespace {

using NamedUsage = std::pair<std::uint32_t, const char*>;
constexpr std::array kUsages{
    NamedUsage{X509v3_KU_DIGITAL_SIGNATURE, "digitalSignature"},
    NamedUsage{X509v3_KU_NON_REPUDIATION, "nonRepudiation"},
    NamedUsage{X509v3_KU_KEY_ENCIPHERMENT, "keyEncipherment"},
    NamedUsage{X509v3_KU_DATA_ENCIPHERMENT, "dataEncipherment"},
    NamedUsage{X509v3_KU_KEY_AGREEMENT, "keyAgreement"},
    NamedUsage{X509v3_KU_KEY_CERT_SIGN, "keyCertSign"},
    NamedUsage{X509v3_KU_CRL_SIGN, "cRLSign"},
};

using ExtendedUsages = std::unique_ptr<EXTENDED_KEY_USAGE, Deleter<EXTENDED_KEY_USAGE_free>>;

std::vector<std::string> extended_usages_of(const X509* certificate) {
  std::vector<std::string> out;
  const ExtendedUsages usages(static_cast<EXTENDED_KEY_USAGE*>(
      X509_get_ext_d2i(certificate, NID_ext_key_usage, nullptr, nullptr)));
  for (int i = 0; usages != nullptr && i < sk_ASN1_OBJECT_num(usages.get()); ++i) {
    const int kind = OBJ_obj2nid(sk_ASN1_OBJECT_value(usages.get(), i));
    out.emplace_back(OBJ_nid2sn(kind));
  }
  return out;
}

CertificateDetails details_of(X509* certificate) {
  CertificateDetails out;
  out.info = describe(certificate);
  out.thumbprint = thumbprint_of(certificate);
  if (const auto* key = X509_get0_pubkey(certificate)) {
    out.key = kind_of(key);
  }
  out.signature = OBJ_nid2ln(X509_get_signature_nid(certificate));
  out.is_authority = X509_check_ca(certificate) != 0;
  out.is_self_signed = X509_self_signed(certificate, 0) == 1;
  if (const auto usage = X509_get_key_usage(certificate); usage != UINT32_MAX) {
    for (const auto& [bit, name] : kUsages) {
      if ((usage & bit) != 0) {
        out.usages.emplace_back(name);
      }
    }
  }
  out.extended_usages = extended_usages_of(certificate);
  out.is_node = !out.is_authority && has_node_usages(certificate);
  ERR_clear_error();
  return out;
}

}  // namespace

Result<std::vector<CertificateDetails>> read_details(std::string_view text) {
  VERGER_TRY(const auto found, read_certificate_list(text));
  std::vector<CertificateDetails> out;
  out.reserve(found.size());
  for (const auto& certificate : found) {
    out.push_back(details_of(certificate.get()));
  }
  return out;
}

}  // namespace verger::certificates
