#include <algorithm>

#include "controller/journal/etcd_journal.h"
#include "nodeagent/http/beast_client.h"

namespace verger::controller {
namespace {

constexpr std::size_t kResponseBytes = std::size_t{512} << 20U;

}  // namespace

Result<std::unique_ptr<http::Client>> make_etcd_http_client(const net::any_io_executor& executor,
                                                            const EtcdOptions& options) {
  std::shared_ptr<http::TlsContext> tls;
  if (std::ranges::any_of(options.endpoints, &http::Endpoint::tls)) {
    VERGER_TRY(tls, http::TlsContext::client(options.tls));
  }
  return std::unique_ptr<http::Client>(std::make_unique<http::BeastClient>(
      executor, http::BeastClientOptions{.response_bytes = kResponseBytes,
                                         .tls = std::move(tls),
                                         .plain_to_loopback_only = true}));
}

}  // namespace verger::controller
