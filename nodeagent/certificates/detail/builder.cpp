#include "nodeagent/certificates/detail/builder.h"

#include <algorithm>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/rand.h>

#include "nodeagent/certificates/key.h"

namespace verger::certificates {
namespace {

Error no_host(std::string_view text, std::string_view what) {
  return {Errc::kInvalidArgument, fmt::format("\"{}\" is {}", text, what)};
}

Result<void> add_name(GENERAL_NAMES* to, int type, std::string_view bytes) {
  AlternativeName name(GENERAL_NAME_new());
  ASN1_STRING* value = type == GEN_IPADD ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
  ASN1_STRING_set(value, bytes.data(), static_cast<int>(bytes.size()));
  GENERAL_NAME_set0_value(name.get(), type, value);
  if (sk_GENERAL_NAME_push(to, name.get()) == 0) {
    return openssl_error("no memory for a name");
  }
  static_cast<void>(name.release());  // the stack's now
  return {};
}

bool is_address(const std::string& host) {
  char raw[16];
  return ::inet_pton(AF_INET, host.c_str(), raw) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), raw) == 1;
}

bool is_host_name(std::string_view name) {
  return !name.empty() && name.size() <= 253 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
}

}  // namespace

std::time_t unix_of(Ticks time) {
  return static_cast<std::time_t>((time.value() - kUnixEpoch.value()) / kTicksPerSecond);
}

Result<Certificate> begin_certificate(EVP_PKEY* key, Ticks from, Ticks until) {
  Certificate out(X509_new());
  unsigned char bytes[16];
  if (out == nullptr || RAND_bytes(bytes, sizeof(bytes)) != 1) {
    return openssl_error("no randomness for a serial number");
  }
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7FU) | 0x40U);  // positive, of full length
  const Number serial(BN_bin2bn(bytes, sizeof(bytes), nullptr));
  std::time_t begin = unix_of(from);
  std::time_t end = unix_of(until);
  if (X509_set_version(out.get(), X509_VERSION_3) != 1 ||
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(out.get())) == nullptr ||
      X509_time_adj_ex(X509_getm_notBefore(out.get()), 0, 0, &begin) == nullptr ||
      X509_time_adj_ex(X509_getm_notAfter(out.get()), 0, 0, &end) == nullptr ||
      X509_set_pubkey(out.get(), key) != 1) {
    return openssl_error("a certificate cannot be put together");
  }
  return out;
}

Result<void> set_common_name(X509_NAME* name, const std::string& text) {
  if (X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(text.data()),
                                 static_cast<int>(text.size()), -1, 0) != 1) {
    return openssl_error("the common name " + text);
  }
  return {};
}

Result<void> add_extension(X509* to, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  if (extension == nullptr || X509_add_ext(to, extension.get(), -1) != 1) {
    return openssl_error(fmt::format("an extension cannot be added ({})", value));
  }
  return {};
}

Result<void> add_host(GENERAL_NAMES* to, const std::string& host) {
  if (is_address(host)) {
    return add_address(to, host);
  }
  if (!is_host_name(host)) {
    return no_host(host, "neither a host's name nor an address");
  }
  return add_name(to, GEN_DNS, host);
}

Result<void> add_dns_name(GENERAL_NAMES* to, const std::string& name) {
  const std::string_view rest = std::string_view(name).substr(name.starts_with("*.") ? 2 : 0);
  if (is_address(name)) {
    return no_host(name, "an address, no DNS name; it belongs to the IP addresses");
  }
  if (!is_host_name(rest)) {
    return no_host(name, "no DNS name");
  }
  return add_name(to, GEN_DNS, name);
}

Result<void> add_address(GENERAL_NAMES* to, const std::string& address) {
  char raw[16];
  const bool v4 = ::inet_pton(AF_INET, address.c_str(), raw) == 1;
  if (!v4 && ::inet_pton(AF_INET6, address.c_str(), raw) != 1) {
    return no_host(address, "no IP address (--ip-addresses); a name is a DNS name (--dns-names)");
  }
  return add_name(to, GEN_IPADD, std::string_view(raw, v4 ? 4U : 16U));
}

Result<void> add_uri(GENERAL_NAMES* to, const std::string& uri) {
  return add_name(to, GEN_URI, uri);
}

Result<void> add_alternative_names(X509* to, const GENERAL_NAMES* names) {
  if (sk_GENERAL_NAME_num(names) > 0 &&
      X509_add1_ext_i2d(to, NID_subject_alt_name, const_cast<GENERAL_NAMES*>(names), 0,
                        X509V3_ADD_DEFAULT) != 1) {
    return openssl_error("the names cannot be added");
  }
  return {};
}

Result<EVP_PKEY*> key_of(X509_REQ* request) {
  EVP_PKEY* key = X509_REQ_get0_pubkey(request);
  if (key == nullptr || X509_REQ_verify(request, key) != 1) {
    return openssl_error("the certificate request is not signed by its own key");
  }
  if (is_weak(key)) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("the key of the certificate request is too weak ({}); it takes EC "
                             "P-256 or RSA 2048",
                             kind_of(key))};
  }
  return key;
}

}  // namespace verger::certificates
