#include "nodeagent/certificates/detail/openssl.h"

#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>

namespace verger::certificates {
namespace {

void free_text(char* text) { OPENSSL_free(text); }
using OpensslText = std::unique_ptr<char, Deleter<free_text>>;

BioOwner reader_of(std::string_view text) {
  return BioOwner(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string content_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

/// An encrypted key is none of ours; without this OpenSSL would prompt on the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*from*/) { return -1; }

}  // namespace

Error openssl_error(std::string_view what) {
  const auto code = ERR_get_error();
  ERR_clear_error();
  char text[256] = "no reason given";
  if (code != 0) {
    ERR_error_string_n(code, text, sizeof(text));
  }
  return {Errc::kInvalidArgument, fmt::format("{}: {}", what, text)};
}

Result<Key> new_key() {
  ERR_clear_error();
  Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) {
    return openssl_error("a new key cannot be made");
  }
  return key;
}

Result<Key> read_key(std::string_view pem) {
  ERR_clear_error();
  Key key(PEM_read_bio_PrivateKey(reader_of(pem).get(), nullptr, no_password, nullptr));
  if (key == nullptr) {
    return openssl_error("no PEM private key");
  }
  return key;
}

Result<Certificate> read_certificate(std::string_view pem) {
  ERR_clear_error();
  Certificate out(PEM_read_bio_X509(reader_of(pem).get(), nullptr, no_password, nullptr));
  if (out == nullptr) {
    return openssl_error("no PEM certificate");
  }
  return out;
}

Result<CertificateRequest> read_request(std::string_view pem) {
  ERR_clear_error();
  CertificateRequest out(
      PEM_read_bio_X509_REQ(reader_of(pem).get(), nullptr, no_password, nullptr));
  if (out == nullptr) {
    return openssl_error("no PEM certificate request");
  }
  return out;
}

Result<std::string> to_pem(const EVP_PKEY* key) {
  const BioOwner bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return openssl_error("a key cannot be written");
  }
  return content_of(bio.get());
}

Result<std::string> to_pem(const X509* certificate) {
  const BioOwner bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) {
    return openssl_error("a certificate cannot be written");
  }
  return content_of(bio.get());
}

Result<std::string> to_pem(const X509_REQ* request) {
  const BioOwner bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509_REQ(bio.get(), request) != 1) {
    return openssl_error("a request cannot be written");
  }
  return content_of(bio.get());
}

std::string serial_of(const X509* certificate) {
  const Number number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  const OpensslText hex(BN_bn2hex(number.get()));
  return hex == nullptr ? std::string() : hex.get();
}

Result<std::string> sha256_of(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) {
    return openssl_error("a certificate cannot be digested");
  }
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    out += fmt::format("{:02x}", digest[i]);
  }
  return out;
}

std::string first_uri_of(const X509* certificate) {
  const AlternativeNames names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const auto* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) {
      const auto* text = name->d.uniformResourceIdentifier;
      return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
              static_cast<std::size_t>(ASN1_STRING_length(text))};
    }
  }
  return {};
}

Result<Ticks> ticks_of(const ASN1_TIME* time) {
  std::tm tm{};
  if (ASN1_TIME_to_tm(time, &tm) != 1) {
    return openssl_error("a date cannot be read");
  }
  return Ticks(kUnixEpoch.value() + std::int64_t{::timegm(&tm)} * kTicksPerSecond);
}

}  // namespace verger::certificates
