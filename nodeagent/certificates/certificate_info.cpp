#include "nodeagent/certificates/certificate_info.h"

#include <algorithm>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/err.h>

#include "engine/base/clock.h"
#include "nodeagent/certificates/detail/node_rules.h"
#include "nodeagent/certificates/openssl.h"

namespace verger::certificates {
namespace {

std::string text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string address_of(const ASN1_OCTET_STRING* octets) {
  const auto bytes = text_of(octets);
  char text[INET6_ADDRSTRLEN] = "";
  if (bytes.size() == 4) {
    ::inet_ntop(AF_INET, bytes.data(), text, sizeof(text));
  } else if (bytes.size() == 16) {
    ::inet_ntop(AF_INET6, bytes.data(), text, sizeof(text));
  }
  return text;
}

std::string date_text(const ASN1_TIME* time) {
  const auto ticks = ticks_of(time);
  return ticks ? format_ticks(*ticks) : std::string();
}

std::string name_text(const X509_NAME* name) {
  const BioOwner bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE & ~XN_FLAG_SPC_EQ);
  return content_of(bio.get());
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return out;
}

}  // namespace

CertificateInfo describe(const X509* certificate) {
  CertificateInfo out;
  const auto* subject = X509_get_subject_name(certificate);
  out.subject = name_text(subject);
  out.issuer = name_text(X509_get_issuer_name(certificate));
  if (const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1); at >= 0) {
    out.common_name = text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  }
  out.serial = serial_of(certificate);
  out.not_before = date_text(X509_get0_notBefore(certificate));
  out.not_after = date_text(X509_get0_notAfter(certificate));
  out.fingerprint = sha256_of(certificate).value_or("");
  const AlternativeNames names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const auto* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) {
      out.names.push_back(text_of(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
      out.names.push_back(address_of(name->d.iPAddress));
    } else if (name->type == GEN_URI) {
      out.uris.push_back(text_of(name->d.uniformResourceIdentifier));
    }
  }
  return out;
}

std::string one_line(const CertificateInfo& certificate) {
  return fmt::format("{} (issuer {}, serial {}, valid from {} to {})", certificate.subject,
                     certificate.issuer, certificate.serial, certificate.not_before,
                     certificate.not_after);
}

bool common_name_fits(std::string_view reserved, std::string_view name) {
  const auto wanted = lower(reserved);
  const auto given = lower(name);
  if (wanted == given) {
    return !wanted.empty();
  }
  const auto labels = std::ranges::count(wanted, '.') + 1;
  if (!wanted.starts_with("*.") || labels < 3 || given.starts_with("*")) {
    return false;
  }
  const auto dot = given.find('.');
  return dot != std::string::npos && dot > 0 && given.substr(dot) == wanted.substr(1);
}

bool has_node_usages(X509* certificate) {
  return has_key_usage(certificate) && !describe(certificate).names.empty() &&
         X509_check_purpose(certificate, X509_PURPOSE_SSL_SERVER, 0) == 1 &&
         X509_check_purpose(certificate, X509_PURPOSE_SSL_CLIENT, 0) == 1;
}

Result<std::vector<CertificateInfo>> read_certificates(const std::string& path) {
  VERGER_TRY(const auto found, read_certificate_file(path));
  std::vector<CertificateInfo> out;
  out.reserve(found.size());
  for (const auto& certificate : found) {
    out.push_back(describe(certificate.get()));
  }
  return out;
}

}  // namespace verger::certificates
