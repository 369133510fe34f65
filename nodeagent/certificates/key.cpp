#include "nodeagent/certificates/key.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/obj_mac.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rsa.h>
#include <utility>

namespace verger::certificates {
namespace {

constexpr int kWeakestRsa = 2048;
constexpr int kWeakestEc = 256;

struct KeyKind {
  KeyType type;
  std::string_view text;
  bool rsa;
  int bits;
  const char* curve;
};
constexpr std::array kKinds{
    KeyKind{KeyType::kRsa2048, "rsa-2048", true, 2048, ""},
    KeyKind{KeyType::kRsa3072, "rsa-3072", true, 3072, ""},
    KeyKind{KeyType::kRsa4096, "rsa-4096", true, 4096, ""},
    KeyKind{KeyType::kEcP256, "ec-p256", false, 256, "P-256"},
    KeyKind{KeyType::kEcP384, "ec-p384", false, 384, "P-384"},
};

const KeyKind& kind_of_type(KeyType type) {
  return *std::ranges::find(kKinds, type, &KeyKind::type);
}

/// "P-256" also where the key names its curve "prime256v1".
std::string curve_of(const EVP_PKEY* key) {
  char group[64] = "";
  if (EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof(group),
                                     nullptr) != 1) {
    return {};
  }
  const char* nist = EC_curve_nid2nist(OBJ_txt2nid(group));
  return nist == nullptr ? group : nist;
}

using Pkcs12 = std::unique_ptr<PKCS12, Deleter<PKCS12_free>>;
void free_certificates(STACK_OF(X509) * stack) { sk_X509_free(stack); }
using CertificateStack = std::unique_ptr<STACK_OF(X509), Deleter<free_certificates>>;

}  // namespace

std::string_view text_of(KeyType type) { return kind_of_type(type).text; }

Result<KeyType> parse_key_type(std::string_view text) {
  std::string known;
  for (const auto& kind : kKinds) {
    if (kind.text == text) {
      return kind.type;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", kind.text);
  }
  return Error{Errc::kInvalidArgument,
               fmt::format("\"{}\" is no type of key; it takes {}", text, known)};
}

Result<Key> new_key(KeyType type) {
  ERR_clear_error();
  const auto& kind = kind_of_type(type);
  Key key(kind.rsa ? EVP_RSA_gen(static_cast<unsigned>(kind.bits)) : EVP_EC_gen(kind.curve));
  if (key == nullptr) {
    return openssl_error("a new key cannot be made");
  }
  return key;
}

Result<std::string> new_private_key(KeyType type, const std::string& password) {
  VERGER_TRY(const auto key, new_key(type));
  return private_key_text(key.get(), password);
}

Result<KeyType> type_of(const EVP_PKEY* key) {
  const auto found = std::ranges::find_if(kKinds, [&](const KeyKind& kind) {
    return kind.rsa ? is_rsa(key) && EVP_PKEY_get_bits(key) == kind.bits
                    : EVP_PKEY_is_a(key, "EC") == 1 && curve_of(key) == kind.curve;
  });
  if (found == kKinds.end()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("a key of the kind {} is not made here", kind_of(key))};
  }
  return found->type;
}

Result<KeyType> key_type_of_certificate(std::string_view certificate) {
  VERGER_TRY(const auto parsed, read_certificate(certificate));
  const auto* key = X509_get0_pubkey(parsed.get());
  if (key == nullptr) {
    return openssl_error("the certificate has no key");
  }
  return type_of(key);
}

std::string not_read_by_servers(std::string_view key_text) {
  constexpr std::string_view kEnd = "-----END ";
  if (!key_text.starts_with("-----BEGIN ")) {
    return "there is text before its BEGIN line";
  }
  if (key_text.contains("Proc-Type:")) {
    return "it is encrypted in the traditional form (Proc-Type)";
  }
  const auto line_end = key_text.find('\n', std::min(key_text.rfind(kEnd), key_text.size()));
  if (line_end != std::string_view::npos && line_end + 1 < key_text.size()) {
    return "there is text or an empty line after its END line";
  }
  return {};
}

std::string kind_of(const EVP_PKEY* key) {
  if (EVP_PKEY_is_a(key, "EC") == 1) {
    return "EC " + curve_of(key);
  }
  const char* name = EVP_PKEY_get0_type_name(key);
  return fmt::format("{} {}", name == nullptr ? "unknown" : name, EVP_PKEY_get_bits(key));
}

bool is_rsa(const EVP_PKEY* key) { return EVP_PKEY_is_a(key, "RSA") == 1; }

bool is_weak(const EVP_PKEY* key) {
  const int bits = EVP_PKEY_get_bits(key);
  return !(is_rsa(key) && bits >= kWeakestRsa) &&
         !(EVP_PKEY_is_a(key, "EC") == 1 && bits >= kWeakestEc);
}

Result<std::string> private_key_text(const EVP_PKEY* key, const std::string& password) {
  const BioOwner bio(BIO_new(BIO_s_mem()));
  const auto* cipher = password.empty() ? nullptr : EVP_aes_256_cbc();
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), key, cipher,
                                    password.empty() ? nullptr : password.data(),
                                    static_cast<int>(password.size()), nullptr, nullptr) != 1) {
    return openssl_error("a key cannot be written");
  }
  return content_of(bio.get());
}

Result<std::string> pkcs12_of(const EVP_PKEY* key, std::string_view certificates,
                              const std::string& password) {
  VERGER_TRY(const auto chain, read_certificate_list(certificates));
  const CertificateStack others(sk_X509_new_null());
  for (std::size_t i = 1; i < chain.size(); ++i) {
    sk_X509_push(others.get(), chain[i].get());
  }
  const Pkcs12 out(PKCS12_create(password.c_str(), nullptr, const_cast<EVP_PKEY*>(key),
                                 chain.front().get(), others.get(), 0, 0, 0, 0, 0));
  const BioOwner bio(BIO_new(BIO_s_mem()));
  if (out == nullptr || i2d_PKCS12_bio(bio.get(), out.get()) != 1) {
    return openssl_error("a PKCS#12 file cannot be made");
  }
  return content_of(bio.get());
}

}  // namespace verger::certificates
