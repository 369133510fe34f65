#include "nodeagent/certificates/detail/verify_chain.h"

#include <openssl/err.h>

#include "nodeagent/certificates/detail/builder.h"

namespace verger::certificates {
namespace {

using Store = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;
void free_borrowed(STACK_OF(X509) * stack) { sk_X509_free(stack); }
using BorrowedStack = std::unique_ptr<STACK_OF(X509), Deleter<free_borrowed>>;

}  // namespace

std::optional<ChainFault> verify_chain(const std::vector<Certificate>& chain,
                                       const std::vector<Certificate>& roots, int purpose,
                                       std::optional<Ticks> at) {
  std::vector<X509*> between;
  for (std::size_t i = 1; i < chain.size(); ++i) {
    between.push_back(chain[i].get());
  }
  return verify_leaf(chain.front().get(), between, roots, purpose, at);
}

std::optional<ChainFault> verify_leaf(const X509* leaf, const std::vector<X509*>& between,
                                      const std::vector<Certificate>& roots, int purpose,
                                      std::optional<Ticks> at) {
  const Store store(X509_STORE_new());
  for (const auto& root : roots) {
    X509_STORE_add_cert(store.get(), root.get());
  }
  const BorrowedStack untrusted(sk_X509_new_null());
  for (auto* each : between) {
    sk_X509_push(untrusted.get(), each);
  }
  const StoreContext context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), const_cast<X509*>(leaf), untrusted.get());
  if (purpose != 0) {
    X509_STORE_CTX_set_purpose(context.get(), purpose);
  }
  if (at) {
    X509_STORE_CTX_set_time(context.get(), 0, unix_of(*at));
  }
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (good) {
    return std::nullopt;
  }
  const int error = X509_STORE_CTX_get_error(context.get());
  return ChainFault{.error = error,
                    .depth = X509_STORE_CTX_get_error_depth(context.get()),
                    .at = X509_STORE_CTX_get_current_cert(context.get()),
                    .text = X509_verify_cert_error_string(error)};
}

bool is_missing_issuer(int error) {
  return error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
         error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
         error == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE ||
         error == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
         error == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
         error == X509_V_ERR_CERT_SIGNATURE_FAILURE;
}

}  // namespace verger::certificates
