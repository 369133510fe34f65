#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controller/journal/etcd_client.h"
#include "controller/journal/etcd_lease.h"
#include "controller/journal/journal.h"
#include "nodeagent/http/tls.h"

namespace verger::controller {

struct EtcdOptions {
  std::vector<http::Endpoint> endpoints{};
  /// Roots that etcd's certificate is verified against; certificate and key where it demands them.
  http::TlsFiles tls{};
  /// All keys begin with it.
  std::string prefix = "/verger/";
  /// Of each call: the controller's thread waits for it.
  std::chrono::milliseconds call_deadline{2'000};
};

/// Who acts, under the key PREFIXacting while the lease lives; begin_epoch puts it there in the
/// transaction that takes the epoch.
struct EtcdTerm {
  std::shared_ptr<EtcdLease> lease;
  std::string acting;  ///< JSON: url, since
};

/// A client for etcd: plain HTTP with this machine only. Errors: those of the certificate files.
Result<std::unique_ptr<http::Client>> make_etcd_http_client(const net::any_io_executor& executor,
                                                            const EtcdOptions& options);

/// etcd, version 3.4 or newer, through its JSON gateway. Format, guarantees and limits:
/// controller/journal/README.md. Calls block until etcd has answered or the deadline is over.
///
/// Beyond what Journal says: append answers kUnavailable where nothing was sent; with a `term`,
/// begin_epoch answers kRefused while another holds it, and append once its lease is over.
/// Errors: those of the certificate files; kUnavailable: no endpoint answers.
Result<std::unique_ptr<Journal>> open_etcd_journal(const EtcdOptions& options, Clock& clock,
                                                   std::optional<EtcdTerm> term = std::nullopt);

/// The key that EtcdTerm::acting stands under.
std::string etcd_acting_key(const EtcdOptions& options);

}  // namespace verger::controller
