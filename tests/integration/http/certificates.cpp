#include "tests/integration/http/certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdexcept>

#include "engine/base/deleter.h"

namespace verger::http::test {
namespace {

using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;

void check(bool good, const char* what) {
  if (!good) {
    throw std::runtime_error(what);
  }
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  check(PEM_write_bio_X509(bio.get(), certificate) == 1, "PEM_write_bio_X509");
  return text_of(bio.get());
}

std::string pem_of(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  check(PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
        "PEM_write_bio_PKCS8PrivateKey");
  return text_of(bio.get());
}

void extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  check(extension != nullptr, "X509V3_EXT_conf_nid");
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

Certificate make(const std::string& common_name, EVP_PKEY* key, long serial) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  return certificate;
}

}  // namespace

struct Authority::Impl {
  Key key{EVP_EC_gen("P-256")};
  Certificate root;
  long serial = 1;
};

Authority::Authority(const std::string& name) : impl_(std::make_unique<Impl>()) {
  check(impl_->key != nullptr, "EVP_EC_gen");
  impl_->root = make(name, impl_->key.get(), impl_->serial++);
  auto* root = impl_->root.get();
  X509_set_issuer_name(root, X509_get_subject_name(root));
  extend(root, root, NID_basic_constraints, "critical,CA:TRUE");
  extend(root, root, NID_key_usage, "critical,keyCertSign,cRLSign");
  check(X509_sign(root, impl_->key.get(), EVP_sha256()) > 0, "X509_sign");
}

Authority::~Authority() = default;

std::string Authority::root() const { return pem_of(impl_->root.get()); }

Authority::Issued Authority::issue(const std::string& common_name, const std::string& names,
                                   const std::string& usages, long from, long until) {
  const Key key(EVP_EC_gen("P-256"));
  const auto leaf = make(common_name, key.get(), impl_->serial++);
  X509_gmtime_adj(X509_getm_notBefore(leaf.get()), from);
  X509_gmtime_adj(X509_getm_notAfter(leaf.get()), until);
  X509_set_issuer_name(leaf.get(), X509_get_subject_name(impl_->root.get()));
  extend(leaf.get(), impl_->root.get(), NID_key_usage, "critical,digitalSignature,keyAgreement");
  extend(leaf.get(), impl_->root.get(), NID_ext_key_usage, usages);
  if (!names.empty()) {
    extend(leaf.get(), impl_->root.get(), NID_subject_alt_name, names);
  }
  check(X509_sign(leaf.get(), impl_->key.get(), EVP_sha256()) > 0, "X509_sign");
  return {.certificate = pem_of(leaf.get()), .key = pem_of(key.get())};
}

}  // namespace verger::http::test
