#include "nodeagent/certificates/issuing.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <initializer_list>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <utility>

#include "engine/base/clock.h"
#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/certificates/detail/builder.h"
#include "nodeagent/certificates/key.h"
#include "nodeagent/certificates/openssl.h"

namespace verger::certificates {
namespace {

using Extensions = std::unique_ptr<X509_EXTENSIONS, Deleter<[](X509_EXTENSIONS* list) {
                                     sk_X509_EXTENSION_pop_free(list, X509_EXTENSION_free);
                                   }>>;

Error not_issued(std::string text) { return {Errc::kInvalidArgument, std::move(text)}; }

/// The extensions that say what a key may be used for, in OpenSSL's words.
std::vector<std::pair<int, const char*>> usages_of(CertificateKind kind, const EVP_PKEY* key) {
  const char* exchange = is_rsa(key) ? "critical,digitalSignature,keyEncipherment"
                                     : "critical,digitalSignature,keyAgreement";
  switch (kind) {
    case CertificateKind::kRoot:
      return {{NID_basic_constraints, "critical,CA:TRUE"},
              {NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign"}};
    case CertificateKind::kIntermediate:
      return {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
              {NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign"}};
    case CertificateKind::kNode:
      return {{NID_basic_constraints, "critical,CA:FALSE"},
              {NID_key_usage, exchange},
              {NID_ext_key_usage, "serverAuth,clientAuth"}};
    case CertificateKind::kUser:
      return {{NID_basic_constraints, "critical,CA:FALSE"},
              {NID_key_usage, exchange},
              {NID_ext_key_usage, "clientAuth"}};
  }
  std::unreachable();
}

Result<AlternativeNames> names_of_terms(const CertificateTerms& terms) {
  AlternativeNames names(GENERAL_NAMES_new());
  for (const auto& name : terms.dns_names) {
    VERGER_RETURN_IF_ERROR(add_dns_name(names.get(), name));
  }
  for (const auto& address : terms.ip_addresses) {
    VERGER_RETURN_IF_ERROR(add_address(names.get(), address));
  }
  return names;
}

Result<void> check_terms(const CertificateTerms& terms) {
  if (terms.common_name.empty() || terms.common_name.size() > 64) {
    return not_issued(fmt::format("a common name has 1 to 64 bytes, \"{}\" has {}",
                                  terms.common_name, terms.common_name.size()));
  }
  if (terms.kind == CertificateKind::kNode && terms.dns_names.empty() &&
      terms.ip_addresses.empty()) {
    return not_issued(
        "a node's certificate needs the IP addresses or DNS names by which others reach the node");
  }
  return {};
}

/// Key, subject, dates and extensions; all but the signature and what names the issuer.
Result<Certificate> begin_of_terms(EVP_PKEY* key, const CertificateTerms& terms) {
  if (terms.not_after <= terms.not_before) {
    return not_issued(fmt::format("a certificate from {} to {} is never valid",
                                  format_ticks(terms.not_before), format_ticks(terms.not_after)));
  }
  VERGER_TRY(auto out, begin_certificate(key, terms.not_before, terms.not_after));
  VERGER_RETURN_IF_ERROR(set_common_name(X509_get_subject_name(out.get()), terms.common_name));
  for (const auto& [kind, value] : usages_of(terms.kind, key)) {
    VERGER_RETURN_IF_ERROR(add_extension(out.get(), out.get(), kind, value));
  }
  VERGER_RETURN_IF_ERROR(add_extension(out.get(), out.get(), NID_subject_key_identifier, "hash"));
  VERGER_TRY(const auto names, names_of_terms(terms));
  VERGER_RETURN_IF_ERROR(add_alternative_names(out.get(), names.get()));
  return out;
}

const EVP_MD* digest_for(const EVP_PKEY* key) {
  return !is_rsa(key) && EVP_PKEY_get_bits(key) > 256 ? EVP_sha384() : EVP_sha256();
}

struct OpenAuthority {
  std::vector<Certificate> chain;  ///< its own first
  Key key;
  Ticks not_before;
  Ticks not_after;
};

Result<OpenAuthority> open_authority(const SigningAuthority& from, const CertificateTerms& terms) {
  OpenAuthority out;
  VERGER_TRY(out.chain, read_certificate_list(from.certificates));
  VERGER_TRY(out.key, read_key(from.key, from.key_password));
  X509* own = out.chain.front().get();
  const auto name = describe(own).subject;
  if (X509_check_private_key(own, out.key.get()) != 1) {
    ERR_clear_error();
    return Error{Errc::kInvalidArgument,
                 fmt::format("the authority's key is not that of its certificate {}", name)};
  }
  if (X509_check_ca(own) == 0 || (X509_get_key_usage(own) & X509v3_KU_KEY_CERT_SIGN) == 0) {
    return not_issued(fmt::format(
        "{} is no certificate of an authority: it may not sign certificates (CA flag, keyCertSign)",
        name));
  }
  if (terms.kind == CertificateKind::kIntermediate && X509_get_pathlen(own) == 0) {
    return not_issued(fmt::format(
        "{} may sign leaves alone (path length 0), no further authority; use its issuer", name));
  }
  VERGER_TRY(out.not_before, ticks_of(X509_get0_notBefore(own)));
  VERGER_TRY(out.not_after, ticks_of(X509_get0_notAfter(own)));
  if (out.not_after <= terms.not_before) {
    return not_issued(fmt::format("the authority {} ended on {}; renew it first", name,
                                  format_ticks(out.not_after)));
  }
  return out;
}

Result<NewCertificate> finish(const X509* signed_one) {
  NewCertificate out;
  VERGER_TRY(out.certificates, to_pem(signed_one));
  out.serial = serial_of(signed_one);
  VERGER_TRY(out.not_before, ticks_of(X509_get0_notBefore(signed_one)));
  VERGER_TRY(out.not_after, ticks_of(X509_get0_notAfter(signed_one)));
  return out;
}

/// The names of `info`, apart by their kind.
void take_names(const CertificateInfo& info, CertificateTerms& terms) {
  for (const auto& name : info.names) {
    const AlternativeNames scratch(GENERAL_NAMES_new());
    (add_address(scratch.get(), name) ? terms.ip_addresses : terms.dns_names).push_back(name);
  }
  terms.common_name = info.common_name;
}

}  // namespace

Result<std::string> make_request(std::string_view key, const std::string& key_password,
                                 const CertificateTerms& terms) {
  VERGER_RETURN_IF_ERROR(check_terms(terms));
  VERGER_TRY(const auto own, read_key(key, key_password));
  const CertificateRequest request(X509_REQ_new());
  VERGER_RETURN_IF_ERROR(
      set_common_name(X509_REQ_get_subject_name(request.get()), terms.common_name));
  Extensions wanted(sk_X509_EXTENSION_new_null());
  for (const auto& [kind, value] : usages_of(terms.kind, own.get())) {
    Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, kind, value));
    if (extension == nullptr || sk_X509_EXTENSION_push(wanted.get(), extension.get()) == 0) {
      return openssl_error(fmt::format("an extension cannot be requested ({})", value));
    }
    static_cast<void>(extension.release());  // the stack's now
  }
  VERGER_TRY(const auto names, names_of_terms(terms));
  auto* list = wanted.get();
  if (sk_GENERAL_NAME_num(names.get()) > 0 &&
      X509V3_add1_i2d(&list, NID_subject_alt_name, names.get(), 0, X509V3_ADD_DEFAULT) != 1) {
    return openssl_error("the names cannot be requested");
  }
  if (X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) != 1 ||
      X509_REQ_set_pubkey(request.get(), own.get()) != 1 ||
      X509_REQ_add_extensions(request.get(), wanted.get()) != 1 ||
      X509_REQ_sign(request.get(), own.get(), digest_for(own.get())) == 0) {
    return openssl_error("a certificate request cannot be made");
  }
  return to_pem(request.get());
}

Result<CertificateTerms> terms_of_request(std::string_view request) {
  VERGER_TRY(const auto parsed, read_request(request));
  VERGER_TRY(EVP_PKEY * key, key_of(parsed.get()));
  // What it says is read as if a certificate said it.
  VERGER_TRY(const auto scratch, begin_certificate(key, kUnixEpoch, kUnixEpoch));
  X509_set_subject_name(scratch.get(), X509_REQ_get_subject_name(parsed.get()));
  const Extensions wanted(X509_REQ_get_extensions(parsed.get()));
  for (int i = 0; wanted != nullptr && i < sk_X509_EXTENSION_num(wanted.get()); ++i) {
    X509_add_ext(scratch.get(), sk_X509_EXTENSION_value(wanted.get(), i), -1);
  }
  CertificateTerms out;
  take_names(describe(scratch.get()), out);
  return out;
}

Result<CertificateTerms> terms_of_certificate(std::string_view certificate) {
  VERGER_TRY(const auto parsed, read_certificate(certificate));
  CertificateTerms out;
  take_names(describe(parsed.get()), out);
  const bool self_signed = X509_self_signed(parsed.get(), 0) == 1;
  ERR_clear_error();
  if (X509_check_ca(parsed.get()) != 0) {
    out.kind = self_signed ? CertificateKind::kRoot : CertificateKind::kIntermediate;
  } else {
    const auto usage = X509_get_extended_key_usage(parsed.get());
    out.kind = (usage & XKU_SSL_SERVER) == 0 ? CertificateKind::kUser : CertificateKind::kNode;
  }
  VERGER_TRY(out.not_before, ticks_of(X509_get0_notBefore(parsed.get())));
  VERGER_TRY(out.not_after, ticks_of(X509_get0_notAfter(parsed.get())));
  return out;
}

std::string new_authority_name(CertificateKind kind) {
  unsigned char bytes[4] = {};
  RAND_bytes(bytes, sizeof(bytes));
  return fmt::format("Verger {}CA {:02X}",
                     kind == CertificateKind::kIntermediate ? "intermediate " : "",
                     fmt::join(bytes, ""));
}

Result<NewCertificate> make_root(std::string_view key, const std::string& key_password,
                                 const CertificateTerms& terms) {
  VERGER_RETURN_IF_ERROR(check_terms(terms));
  VERGER_TRY(const auto own, read_key(key, key_password));
  VERGER_TRY(const auto root, begin_of_terms(own.get(), terms));
  if (X509_set_issuer_name(root.get(), X509_get_subject_name(root.get())) != 1 ||
      X509_sign(root.get(), own.get(), digest_for(own.get())) == 0) {
    return openssl_error("the root cannot be signed");
  }
  return finish(root.get());
}

Result<NewCertificate> issue(std::string_view request, const CertificateTerms& terms,
                             const SigningAuthority& by) {
  VERGER_RETURN_IF_ERROR(check_terms(terms));
  VERGER_TRY(const auto parsed, read_request(request));
  VERGER_TRY(EVP_PKEY * key, key_of(parsed.get()));
  VERGER_TRY(const auto authority, open_authority(by, terms));
  auto within = terms;
  within.not_before = std::max(terms.not_before, authority.not_before);
  within.not_after = std::min(terms.not_after, authority.not_after);
  VERGER_TRY(const auto leaf, begin_of_terms(key, within));
  X509* issuer = authority.chain.front().get();
  if (X509_set_issuer_name(leaf.get(), X509_get_subject_name(issuer)) != 1) {
    return openssl_error("the issuer's name");
  }
  // Other tools make authorities without key identifier.
  VERGER_RETURN_IF_ERROR(
      add_extension(leaf.get(), issuer, NID_authority_key_identifier, "keyid,issuer"));
  if (X509_sign(leaf.get(), authority.key.get(), digest_for(authority.key.get())) == 0) {
    return openssl_error("the certificate cannot be signed");
  }
  VERGER_TRY(auto out, finish(leaf.get()));
  for (const auto& each : authority.chain) {
    if (X509_self_signed(each.get(), 0) != 1) {  // roots are trusted, not shown
      VERGER_TRY(const auto text, to_pem(each.get()));
      out.certificates += text;
    }
  }
  ERR_clear_error();
  out.ends_with_authority = within.not_after < terms.not_after;
  return out;
}

}  // namespace verger::certificates
