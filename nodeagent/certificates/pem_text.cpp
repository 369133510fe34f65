#include "nodeagent/certificates/pem_text.h"

#include <algorithm>
#include <openssl/err.h>

#include "nodeagent/certificates/detail/verify_chain.h"
#include "nodeagent/certificates/openssl.h"

namespace verger::certificates {

Result<std::vector<std::string>> pem_list(std::string_view text) {
  VERGER_TRY(const auto read, read_certificate_list(text));
  std::vector<std::string> out;
  for (const auto& each : read) {
    VERGER_TRY(auto pem, to_pem(each.get()));
    out.push_back(std::move(pem));
  }
  return out;
}

Result<std::string> pem_of(std::string_view text) {
  VERGER_TRY(const auto list, pem_list(text));
  std::string out;
  for (const auto& each : list) {
    out += each;
  }
  return out;
}

std::string leaf_pem(std::string_view chain) {
  auto list = pem_list(chain);
  return list ? std::move(list->front()) : std::string();
}

std::string intermediates_pem(std::string_view chain, std::string_view known) {
  const auto list = pem_list(chain);
  const auto others = pem_list(known);
  std::string out;
  for (std::size_t i = 1; list && i < list->size(); ++i) {
    if (!others || std::ranges::find(*others, list->at(i)) == others->end()) {
      out += list->at(i);
    }
  }
  return out;
}

Result<bool> key_fits(std::string_view certificates, std::string_view key,
                      const std::string& password) {
  VERGER_TRY(const auto chain, read_certificate_list(certificates));
  VERGER_TRY(const auto read, read_key(key, password));
  const bool fits = X509_check_private_key(chain.front().get(), read.get()) == 1;
  ERR_clear_error();
  return fits;
}

bool is_encrypted_key(std::string_view key) {
  return key.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") ||
         key.contains("Proc-Type: 4,ENCRYPTED");
}

std::string why_not_chained(std::string_view chain, std::string_view roots,
                            std::optional<Ticks> at) {
  const auto shown = read_certificate_list(chain);
  if (!shown) {
    return shown.error().message;
  }
  const auto trusted = read_certificate_list(roots);
  if (!trusted) {
    return trusted.error().message;
  }
  const auto fault = verify_chain(*shown, *trusted, 0, at);
  return fault ? fault->text : std::string();
}

}  // namespace verger::certificates
