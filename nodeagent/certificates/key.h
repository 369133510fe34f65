#pragma once

#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "nodeagent/certificates/openssl.h"

/// Private keys: made, written, read.
namespace verger::certificates {

enum class KeyType : std::uint8_t { kRsa2048, kRsa3072, kRsa4096, kEcP256, kEcP384 };

/// "rsa-2048", "rsa-3072", "rsa-4096", "ec-p256", "ec-p384".
std::string_view text_of(KeyType type);
/// Error: kInvalidArgument, with those it takes.
Result<KeyType> parse_key_type(std::string_view text);

Result<Key> new_key(KeyType type);
/// The text of a new key, as private_key_text writes it.
Result<std::string> new_private_key(KeyType type, const std::string& password);
/// That of which a new key would be of the same kind. Error: kInvalidArgument: none of ours.
Result<KeyType> type_of(const EVP_PKEY* key);
/// The same of the key in a certificate, the first of a text.
Result<KeyType> key_type_of_certificate(std::string_view certificate);
/// Why servers do not read a key's text although OpenSSL does; empty: they do.
std::string not_read_by_servers(std::string_view key_text);
/// For people: "RSA 2048", "EC P-256".
std::string kind_of(const EVP_PKEY* key);
/// Less than RSA 2048 or EC P-256, or of another kind.
bool is_weak(const EVP_PKEY* key);
/// Whether it is an RSA key, the only kind that servers load (docs/operations/certificates.md).
bool is_rsa(const EVP_PKEY* key);

/// PKCS#8 as PEM; with a password encrypted (PBES2, AES-256).
Result<std::string> private_key_text(const EVP_PKEY* key, const std::string& password);
/// Key, certificate and the intermediates behind it in one PKCS#12 file's bytes. `certificates`:
/// PEM, leaf first.
Result<std::string> pkcs12_of(const EVP_PKEY* key, std::string_view certificates,
                              const std::string& password);

}  // namespace verger::certificates
