#include "nodeagent/certificates/openssl.h"

#include <cstring>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "engine/base/bytes.h"
#include "engine/base/file_system.h"
#include "engine/base/unix_time.h"

namespace verger::certificates {
namespace {

void free_text(char* text) { OPENSSL_free(text); }
using OpensslText = std::unique_ptr<char, Deleter<free_text>>;

BioOwner reader_of(std::string_view text) {
  return BioOwner(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// Without a callback OpenSSL would prompt on the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*from*/) { return -1; }

int give_password(char* buffer, int size, int /*writing*/, void* from) {
  const auto& password = *static_cast<const std::string*>(from);
  if (password.empty() || password.size() > static_cast<std::size_t>(size)) {
    return -1;
  }
  std::memcpy(buffer, password.data(), password.size());
  return static_cast<int>(password.size());
}

}  // namespace

std::string content_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

Error openssl_error(std::string_view what) {
  const auto code = ERR_get_error();
  ERR_clear_error();
  // The whole of an error names places in OpenSSL's sources, which help no one here.
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return {Errc::kInvalidArgument,
          reason == nullptr ? std::string(what) : fmt::format("{} ({})", what, reason)};
}

Result<Key> read_key(std::string_view pem, const std::string& password) {
  ERR_clear_error();
  auto given = password;
  Key key(PEM_read_bio_PrivateKey(reader_of(pem).get(), nullptr, give_password, &given));
  if (key == nullptr) {
    const bool encrypted = pem.contains("ENCRYPTED");
    if (encrypted) {
      ERR_clear_error();
      return Error{Errc::kInvalidArgument,
                   password.empty() ? "the private key is encrypted and no password is given"
                                    : "the private key is encrypted; is the password right?"};
    }
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

Result<std::vector<Certificate>> read_certificate_list(std::string_view text) {
  ERR_clear_error();
  std::vector<Certificate> out;
  const auto bio = reader_of(text);
  while (Certificate next{PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr)}) {
    out.push_back(std::move(next));
  }
  const auto last = ERR_peek_last_error();
  // The end of the text is reported as "no start line".
  const bool ended =
      ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  if (!out.empty() && !ended) {
    return openssl_error("one of its certificates cannot be read");
  }
  ERR_clear_error();
  if (out.empty()) {
    Certificate one(d2i_X509_bio(reader_of(text).get(), nullptr));
    ERR_clear_error();
    if (one == nullptr) {
      return Error{Errc::kInvalidArgument,
                   "no PEM certificate in it, and it is not a DER certificate either"};
    }
    out.push_back(std::move(one));
  }
  return out;
}

Result<std::vector<Certificate>> read_certificate_file(const std::string& path) {
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), path));
  auto found = read_certificate_list(as_text(bytes));
  return found ? std::move(found) : found.error().within(path);
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

std::string thumbprint_of(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  std::string out;
  if (X509_digest(certificate, EVP_sha1(), digest, &size) == 1) {
    for (unsigned i = 0; i < size; ++i) {
      out += fmt::format("{:02X}", digest[i]);
    }
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
  return ticks_at_unix(unix_seconds_of(tm));
}

}  // namespace verger::certificates
