#pragma once

#include <memory>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/deleter.h"
#include "engine/base/result.h"
#include "engine/base/types.h"

/// OpenSSL's objects with owners, and their texts.
namespace verger::certificates {

using BioOwner = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using CertificateRequest = std::unique_ptr<X509_REQ, Deleter<X509_REQ_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Number = std::unique_ptr<BIGNUM, Deleter<BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using AlternativeNames = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;
using AlternativeName = std::unique_ptr<GENERAL_NAME, Deleter<GENERAL_NAME_free>>;

/// kInvalidArgument, with the newest reason of OpenSSL, whose queue is emptied.
Error openssl_error(std::string_view what);

/// What was written to a memory BIO.
std::string content_of(BIO* bio);

/// Errors of these: kInvalidArgument: no such thing in the text.
/// `password`: of an encrypted key; without one such a key is an error.
Result<Key> read_key(std::string_view pem, const std::string& password = {});
Result<Certificate> read_certificate(std::string_view pem);
Result<CertificateRequest> read_request(std::string_view pem);
/// All certificates of a PEM text in order, or the one of a DER file's bytes; at least one.
Result<std::vector<Certificate>> read_certificate_list(std::string_view text);
/// The same of a file, which the message names. Errors: kNotFound and kIo, too.
Result<std::vector<Certificate>> read_certificate_file(const std::string& path);
Result<std::string> to_pem(const EVP_PKEY* key);
Result<std::string> to_pem(const X509* certificate);
Result<std::string> to_pem(const X509_REQ* request);

/// Upper-case hex.
std::string serial_of(const X509* certificate);
/// Lower-case hex.
Result<std::string> sha256_of(const X509* certificate);
/// SHA-1, upper-case hex, as servers log it; empty where OpenSSL has no SHA-1.
std::string thumbprint_of(const X509* certificate);
std::string first_uri_of(const X509* certificate);
Result<Ticks> ticks_of(const ASN1_TIME* time);

}  // namespace verger::certificates
