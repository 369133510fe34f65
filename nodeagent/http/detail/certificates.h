#pragma once

#include <memory>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/deleter.h"
#include "engine/base/result.h"
#include "nodeagent/http/tls.h"

/// OpenSSL's objects with owners, and what is read from files and certificates. Nothing here talks
/// to the network.
namespace verger::http {

using X509Owner = std::unique_ptr<X509, Deleter<X509_free>>;
using KeyOwner = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;

/// What TlsFiles name, read once.
struct TlsMaterial {
  std::vector<X509Owner> chain;  ///< leaf first; empty: none is shown
  KeyOwner key;
  std::vector<X509Owner> roots;
};

/// The newest error of OpenSSL's queue, which is emptied.
std::string openssl_text();

/// Reads certificate, key and roots and checks that they belong together, as far as TlsFiles says.
/// Errors: those of TlsContext; the message names the file.
Result<TlsMaterial> load_material(const TlsFiles& files);

CertificateInfo describe(const X509* certificate);
/// "CN=n1 (issuer CN=root, serial 0A1B, valid until 2026-01-01T00:00:00Z)"
std::string one_line(const CertificateInfo& certificate);

/// Whether a common name is that of a node: equal without case, or one label in place of the "*"
/// of a pattern with three labels or more. A name that is itself a wildcard is compared literally.
bool common_name_fits(std::string_view reserved, std::string_view name);
/// Names, key usages and extended usages as a node's certificate has them (node-interface.md, 4.3).
bool has_node_usages(X509* certificate);

}  // namespace verger::http
