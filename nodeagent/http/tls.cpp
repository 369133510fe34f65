#include "nodeagent/http/tls.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include "nodeagent/certificates/tls_material.h"
#include "nodeagent/http/detail/tls_transport.h"

namespace verger::http {
namespace {

Error not_taken(const std::string& path, std::string_view what) {
  return certificates::openssl_error(fmt::format("{}: {}", path, what));
}

}  // namespace

Result<std::shared_ptr<const TlsContext::Impl::Loaded>> TlsContext::Impl::build(
    const certificates::TlsMaterial& material, const TlsFiles& from) const {
  auto out = std::make_shared<Loaded>();
  out->context = std::make_unique<net::ssl::context>(is_server ? net::ssl::context::tls_server
                                                               : net::ssl::context::tls_client);
  SSL_CTX* native = out->context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // What is sent is what the certificate file has, and no root out of the trusted ones.
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
  // Each handshake verifies anew; a resumed one would bring back an old verdict.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(native, 0);
  if (is_server) {
    choose_protocol(native);
  }
  if (!material.chain.empty()) {
    if (SSL_CTX_use_certificate(native, material.chain.front().get()) != 1) {
      return not_taken(from.certificate, "this certificate cannot be used");
    }
    const bool leaf_alone = !is_server && from.check_own_chain;
    for (std::size_t i = 1; i < material.chain.size() && !leaf_alone; ++i) {
      if (SSL_CTX_add1_chain_cert(native, material.chain[i].get()) != 1) {
        return not_taken(from.certificate, "an intermediate cannot be used");
      }
    }
    if (SSL_CTX_use_PrivateKey(native, material.key.get()) != 1) {
      return not_taken(from.private_key, "this key cannot be used");
    }
    out->certificate = certificates::describe(material.chain.front().get());
  } else if (is_server) {
    return Error{Errc::kInvalidArgument, "a TLS server needs a certificate"};
  }
  out->reserved_common_name =
      from.reserved_common_name.empty() ? out->certificate.common_name : from.reserved_common_name;
  out->trusted_roots = from.trusted_roots;
  if (!is_server || clients != ClientCertificate::kNotRequested) {
    if (material.roots.empty()) {
      return Error{Errc::kInvalidArgument,
                   "trusted roots are not configured; without them no certificate is accepted"};
    }
    for (const auto& root : material.roots) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(native), root.get());
    }
    // OpenSSL trusts self-signed ones alone; these lead from a peer's leaf to a root.
    for (std::size_t i = 1; i < material.chain.size() && from.check_own_chain; ++i) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(native), material.chain[i].get());
    }
    auto mode = net::ssl::verify_peer;
    if (is_server && clients == ClientCertificate::kRequired) {
      mode |= net::ssl::verify_fail_if_no_peer_cert;
    }
    boost::system::error_code ignored;  // it cannot fail
    out->context->set_verify_mode(mode, ignored);
  }
  return std::shared_ptr<const Loaded>(std::move(out));
}

TlsContext::TlsContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::server(TlsFiles files, ClientCertificate clients) {
  auto impl = std::make_unique<Impl>();
  impl->files = std::move(files);
  impl->is_server = true;
  impl->clients = clients;
  std::shared_ptr<TlsContext> out(new TlsContext(std::move(impl)));
  VERGER_RETURN_IF_ERROR(out->reload());
  return out;
}

Result<std::shared_ptr<TlsContext>> TlsContext::client(TlsFiles files) {
  auto impl = std::make_unique<Impl>();
  impl->files = std::move(files);
  std::shared_ptr<TlsContext> out(new TlsContext(std::move(impl)));
  VERGER_RETURN_IF_ERROR(out->reload());
  return out;
}

Result<void> TlsContext::reload() {
  const auto files = impl_->current_files();
  VERGER_TRY(const auto material, certificates::load_material(files));
  VERGER_TRY(auto loaded, impl_->build(material, files));
  const std::lock_guard lock(impl_->mutex);
  impl_->loaded = std::move(loaded);
  return {};
}

Result<void> TlsContext::reload_all(const std::vector<std::shared_ptr<TlsContext>>& contexts,
                                    const TlsFiles& files) {
  VERGER_TRY(const auto material, certificates::load_material(files));
  return reload_all(contexts, files, material);
}

Result<void> TlsContext::reload_all(const std::vector<std::shared_ptr<TlsContext>>& contexts,
                                    const TlsFiles& files,
                                    const certificates::TlsMaterial& material) {
  std::vector<std::shared_ptr<const Impl::Loaded>> built;
  for (const auto& context : contexts) {
    VERGER_TRY(auto loaded, context->impl_->build(material, files));
    built.push_back(std::move(loaded));
  }
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    auto& impl = *contexts[i]->impl_;
    const std::lock_guard lock(impl.mutex);
    impl.files = files;
    impl.loaded = std::move(built[i]);
  }
  return {};
}

std::string TlsContext::fingerprint() const { return impl_->current()->certificate.fingerprint; }
CertificateInfo TlsContext::certificate() const { return impl_->current()->certificate; }

}  // namespace verger::http
