#include "nodeagent/daemon/tls_set.h"

#include <fmt/format.h>

namespace verger::agent {

Result<std::unique_ptr<NodeTls>> NodeTls::load(const http::TlsFiles& files, Log& log) {
  std::unique_ptr<NodeTls> out(new NodeTls(log));
  VERGER_TRY(out->clients_, http::TlsContext::server(files, http::ClientCertificate::kOptional));
  VERGER_TRY(out->nodes_, http::TlsContext::server(files, http::ClientCertificate::kRequired));
  VERGER_TRY(out->calls_, http::TlsContext::client(files));
  const auto certificate = out->clients_->certificate();
  log.info("certificates loaded", {{"file", files.certificate},
                                   {"subject", certificate.subject},
                                   {"serial", certificate.serial},
                                   {"valid_until", certificate.not_after},
                                   {"roots", files.trusted_roots}});
  return out;
}

Result<void> NodeTls::reload(const http::TlsFiles& files) {
  // The lines are the server's own, which people look for (node-interface.md, 4.5).
  const auto before = clients_->certificate();
  log_.info(fmt::format("Loading the node's certificate(s) from file: \"{}\"", files.certificate));
  if (auto loaded = http::TlsContext::reload_all({clients_, nodes_, calls_}, files); !loaded) {
    log_.error("An error has occurred while reloading the configuration",
               {{"error", loaded.error().message},
                {"still_served", before.serial},
                {"do", "correct the files and reload again"}});
    return loaded.error();
  }
  const auto now = clients_->certificate();
  log_.info(fmt::format("Loading the node's certificate. Subject: \"{}\", Previous thumbprint: "
                        "\"{}\", New thumbprint: \"{}\"",
                        now.subject, before.fingerprint, now.fingerprint),
            {{"serial", now.serial}, {"valid_until", now.not_after}});
  log_.info("All certificates successfully loaded.");
  log_.info("The node's configuration was successfully reloaded");
  return {};
}

}  // namespace verger::agent
