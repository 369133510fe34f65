#include "nodeagent/certificates/detail/node_rules.h"

#include <openssl/err.h>

namespace verger::certificates {

std::vector<std::string> addresses_not_covered(X509* certificate,
                                               const std::vector<std::string>& addresses) {
  std::vector<std::string> out;
  for (const auto& address : addresses) {
    const bool fits = X509_check_ip_asc(certificate, address.c_str(), 0) == 1 ||
                      X509_check_host(certificate, address.data(), address.size(), 0, nullptr) == 1;
    if (!fits) {
      out.push_back(address);
    }
  }
  ERR_clear_error();
  return out;
}

bool has_server_usage(X509* certificate) {
  return (X509_get_extended_key_usage(certificate) & XKU_SSL_SERVER) != 0;
}

bool has_client_usage(X509* certificate) {
  return (X509_get_extended_key_usage(certificate) & XKU_SSL_CLIENT) != 0;
}

bool has_key_usage(X509* certificate) {
  const auto usage = X509_get_key_usage(certificate);
  return (usage & X509v3_KU_DIGITAL_SIGNATURE) != 0 &&
         (usage & (X509v3_KU_KEY_ENCIPHERMENT | X509v3_KU_KEY_AGREEMENT)) != 0;
}

}  // namespace verger::certificates
