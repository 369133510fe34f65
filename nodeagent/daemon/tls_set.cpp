#include "nodeagent/daemon/tls_set.h"

#include "nodeagent/certificates/tls_material.h"

namespace verger::agent {

Result<std::unique_ptr<NodeTls>> NodeTls::load(const http::TlsFiles& files, Log& log) {
  std::unique_ptr<NodeTls> out(new NodeTls(log));
  VERGER_TRY(out->clients_, http::TlsContext::server(files, http::ClientCertificate::kOptional));
  VERGER_TRY(out->nodes_, http::TlsContext::server(files, http::ClientCertificate::kRequired));
  VERGER_TRY(out->calls_, http::TlsContext::client(files));
  VERGER_RETURN_IF_ERROR(out->take(files));
  const auto certificate = out->clients_->certificate();
  log.info("certificates loaded", {{"file", files.certificate},
                                   {"subject", certificate.subject},
                                   {"serial", certificate.serial},
                                   {"valid_until", certificate.not_after},
                                   {"roots", files.trusted_roots}});
  return out;
}

Result<void> NodeTls::take(const http::TlsFiles& files) {
  VERGER_TRY(const auto material,
             certificates::load_material(
                 files, {.previous_thumbprint = thumbprint_,
                         .write = [this](const std::string& line) { log_.info(line); }}));
  VERGER_RETURN_IF_ERROR(http::TlsContext::reload_all({clients_, nodes_, calls_}, files, material));
  thumbprint_ = certificates::thumbprint_of(material.chain.front().get());
  log_.info("All certificates successfully loaded.");
  return {};
}

Result<void> NodeTls::reload(const http::TlsFiles& files) {
  // The lines are the server's own, which people look for (node-interface.md, 4.5).
  if (auto taken = take(files); !taken) {
    log_.error("An error has occurred while reloading the configuration",
               {{"error", taken.error().message},
                {"still_served", clients_->certificate().serial},
                {"do", "correct the files and reload again"}});
    return taken;
  }
  log_.info("The node's configuration was successfully reloaded");
  return {};
}

}  // namespace verger::agent
