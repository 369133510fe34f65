#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "controller/cluster/observer.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/request_signature.h"
#include "nodeagent/http/tls.h"

namespace verger::controller {

/// Between two requests of a step that is watched each connection stays. Between two looks of a
/// survey so many stay to nodes, and as many to agents; with all of a large fleet there would be
/// thousands, of some 100 KiB each over TLS. A new one costs a millisecond of processor time.
inline constexpr std::chrono::seconds kConnectionUnused{5};
inline constexpr std::size_t kConnectionsKept = 250;
/// Longer than the minute between two looks, and less than agents and servers wait.
inline constexpr std::chrono::seconds kKeptConnectionUnused{70};

/// What vergerd shows and trusts over https.
struct ClientTls {
  /// vergerd's own certificate and key, for agents, which demand one; both may be empty. Nodes do
  /// not get to see it: they accept none that their own roots do not know.
  std::string certificate{};
  std::string private_key{};
  /// For clusters that name no roots of their own; empty: such clusters cannot use https.
  std::string trusted_roots{};
};

/// The HTTP clients of vergerd, two for each set of trusted roots. Plain HTTP goes to loopback
/// addresses only. One executor; everything handed out lives as long as this object.
class TrustedClients {
 public:
  /// `directory`: where relative names of trusted roots begin.
  /// `agents_token`: what requests to agents without TLS are signed with.
  static Result<std::unique_ptr<TrustedClients>> make(boost::asio::any_io_executor executor,
                                                      ClientTls tls, Path directory,
                                                      std::string agents_token, Log& log);

  /// Empty: vergerd's own trusted roots. A file of roots that was changed is read again within
  /// a second, as in reload(): correcting it needs no signal. Errors: those of
  /// http::TlsContext; a failure is not remembered, since the file may come.
  Result<ClusterClients> trusting(const std::string& roots);
  /// The certificates of these roots as they are now; those of a file that cannot be read are
  /// missing.
  [[nodiscard]] std::vector<http::CertificateInfo> roots_of(const std::string& roots) const;
  /// Reads all certificates and roots again; what fails keeps what it has, and is logged.
  void reload();

 private:
  struct Side {
    std::shared_ptr<http::TlsContext> tls;
    std::unique_ptr<http::BeastClient> client;
  };
  struct Entry {
    Side nodes;
    Side agents;
    std::unique_ptr<http::SigningClient> signing;  ///< over `agents`
    std::string seen;  ///< what its roots' files were like when they were read
    Monotonic looked_at{};
  };
  TrustedClients(boost::asio::any_io_executor executor, ClientTls tls, Path directory,
                 std::string agents_token, Log& log)
      : executor_(std::move(executor)),
        tls_(std::move(tls)),
        directory_(std::move(directory)),
        agents_token_(std::move(agents_token)),
        log_(log) {}
  Result<Side> make_side(const http::TlsFiles& files) const;
  [[nodiscard]] Path place_of(const std::string& roots) const;
  void reload(const std::string& roots, Entry& entry);

  boost::asio::any_io_executor executor_;
  ClientTls tls_;
  Path directory_;
  std::string agents_token_;
  Log& log_;
  std::map<std::string, Entry> by_roots_;
  std::shared_ptr<http::KeptConnections> kept_ =
      std::make_shared<http::KeptConnections>(kConnectionsKept, kKeptConnectionUnused);
};

}  // namespace verger::controller
