#include "nodeagent/certificates/signed_answer.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/err.h>

#include "nodeagent/certificates/openssl.h"

namespace verger::certificates {
namespace {

Error wrong_answer(std::string text) { return {Errc::kInvalidArgument, std::move(text)}; }

bool signed_itself(const X509* certificate) {
  const bool out = X509_self_signed(const_cast<X509*>(certificate), 0) == 1;
  ERR_clear_error();
  return out;
}

Result<void> check_leaf(X509* leaf, const CertificateInfo& info, const CertificateTerms& terms) {
  if (X509_check_ca(leaf) != 0) {
    return wrong_answer(fmt::format("{} is an authority's certificate", info.subject));
  }
  if (info.common_name != terms.common_name) {
    return wrong_answer(fmt::format("its common name is \"{}\"; \"{}\" was requested",
                                    info.common_name, terms.common_name));
  }
  std::vector<std::string> missing;
  for (const auto* names : {&terms.dns_names, &terms.ip_addresses}) {
    std::ranges::copy_if(*names, std::back_inserter(missing), [&](const std::string& name) {
      return std::ranges::find(info.names, name) == info.names.end();
    });
  }
  if (!missing.empty()) {
    return wrong_answer(fmt::format("it is for {}, and not for {}, which was requested",
                                    fmt::join(info.names, ", "), fmt::join(missing, ", ")));
  }
  return {};
}

}  // namespace

Result<SignedAnswer> take_answer(std::string_view request, const CertificateTerms& terms,
                                 std::string_view answer) {
  VERGER_TRY(const auto asked, read_request(request));
  auto read = read_certificate_list(answer);
  if (!read) {
    return wrong_answer("no certificate came back");
  }
  auto& all = *read;
  const auto* key = X509_REQ_get0_pubkey(asked.get());
  const auto leaf = std::ranges::find_if(all, [&](const Certificate& each) {
    const auto* own = X509_get0_pubkey(each.get());
    return own != nullptr && EVP_PKEY_eq(key, own) == 1;
  });
  ERR_clear_error();
  if (leaf == all.end()) {
    return wrong_answer(fmt::format("{} came back, which is not for the request's key",
                                    describe(all.front().get()).subject));
  }
  SignedAnswer out{.leaf = describe(leaf->get())};
  VERGER_RETURN_IF_ERROR(check_leaf(leaf->get(), out.leaf, terms));
  const X509* top = leaf->get();
  VERGER_TRY(out.chain, to_pem(top));
  for (std::size_t steps = 0; steps < all.size() && top != nullptr && !signed_itself(top);
       ++steps) {
    const auto above = std::ranges::find_if(all, [&](const Certificate& each) {
      return each.get() != top &&
             X509_NAME_cmp(X509_get_subject_name(each.get()), X509_get_issuer_name(top)) == 0;
    });
    top = above == all.end() ? nullptr : above->get();
    if (top != nullptr) {
      VERGER_TRY(const auto text, to_pem(top));
      (signed_itself(top) ? out.roots : out.chain) += text;
    }
  }
  return out;
}

}  // namespace verger::certificates
