#include "controller/daemon/trusted_clients.h"

namespace verger::controller {

Result<TrustedClients::Side> TrustedClients::make_side(const http::TlsFiles& files) const {
  Side side;
  if (!files.trusted_roots.empty()) {
    VERGER_TRY(side.tls, http::TlsContext::client(files));
  }
  side.client = std::make_unique<http::BeastClient>(
      executor_,
      http::BeastClientOptions{
          .tls = side.tls,
          .roots_advice = "; name those of the cluster's certificates (verger cluster add --ca "
                          "FILE), or start vergerd with --ca",
          .plain_to_loopback_only = true});
  return side;
}

Result<std::unique_ptr<TrustedClients>> TrustedClients::make(boost::asio::any_io_executor executor,
                                                             ClientTls tls, Path directory,
                                                             Log& log) {
  std::unique_ptr<TrustedClients> out(
      new TrustedClients(std::move(executor), std::move(tls), std::move(directory), log));
  VERGER_CHECK(out->trusting({}));
  return out;
}

Result<ClusterClients> TrustedClients::trusting(const std::string& roots) {
  auto known = by_roots_.find(roots);
  if (known == by_roots_.end()) {
    // An absolute name replaces the directory.
    const auto where = roots.empty() ? tls_.trusted_roots : (directory_ / roots).string();
    Entry entry;
    VERGER_TRY(entry.nodes, make_side({.trusted_roots = where}));
    VERGER_TRY(entry.agents, make_side({.certificate = tls_.certificate,
                                        .private_key = tls_.private_key,
                                        .trusted_roots = where}));
    known = by_roots_.emplace(roots, std::move(entry)).first;
  }
  return ClusterClients{.nodes = known->second.nodes.client.get(),
                        .agents = known->second.agents.client.get()};
}

void TrustedClients::reload() {
  for (auto& [roots, entry] : by_roots_) {
    for (auto* side : {&entry.nodes, &entry.agents}) {
      if (side->tls == nullptr) {
        continue;
      }
      if (auto loaded = side->tls->reload(); !loaded) {
        log_.error("certificates not reloaded; the former ones stay",
                   {{"of", roots.empty() ? "vergerd" : roots}, {"error", loaded.error().message}});
        continue;
      }
      side->client->drop_connections();
    }
  }
  log_.info("certificates and trusted roots read again");
}

}  // namespace verger::controller
