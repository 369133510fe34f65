#include "nodeagent/http/tls.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <vector>

#include "nodeagent/http/detail/tls_transport.h"

namespace verger::http {
namespace {

namespace fs = std::filesystem;

std::string openssl_text() {
  const auto code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) {
    return "no reason given";
  }
  char text[256];
  ERR_error_string_n(code, text, sizeof(text));
  return text;
}

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::error_code ignored;
    return Error{fs::exists(path, ignored) ? Errc::kIo : Errc::kNotFound,
                 fmt::format("{}: cannot be read", path)};
  }
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<std::vector<std::string>> root_files(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return std::vector<std::string>{path};
  }
  std::vector<std::string> files;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const auto extension = it->path().extension();
    if (extension == ".crt" || extension == ".cer" || extension == ".pem") {
      files.push_back(it->path().string());
    }
  }
  if (error) {
    return Error{Errc::kIo, fmt::format("{}: {}", path, error.message())};
  }
  std::ranges::sort(files);
  return files;
}

std::string fingerprint_of(SSL_CTX* context) {
  const X509* leaf = SSL_CTX_get0_certificate(context);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  std::string out;
  if (leaf != nullptr && X509_digest(leaf, EVP_sha256(), digest, &size) == 1) {
    for (unsigned i = 0; i < size; ++i) {
      out += fmt::format("{:02x}", digest[i]);
    }
  }
  return out;
}

}  // namespace

Result<std::shared_ptr<const TlsContext::Impl::Loaded>> TlsContext::Impl::load() const {
  ERR_clear_error();
  const auto wrong = [](const std::string& path, std::string_view why) {
    return Error{Errc::kInvalidArgument, fmt::format("{}: {}", path, why)};
  };
  auto out = std::make_shared<Loaded>();
  out->context = std::make_unique<net::ssl::context>(is_server ? net::ssl::context::tls_server
                                                               : net::ssl::context::tls_client);
  auto& context = *out->context;
  SSL_CTX* native = context.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  // Each handshake verifies anew; a resumed one would bring back an old verdict.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_num_tickets(native, 0);
  boost::system::error_code error;
  if (!files.certificate.empty()) {
    VERGER_TRY(const auto certificate, read_text(files.certificate));
    context.use_certificate_chain(net::buffer(certificate), error);
    if (error) {
      return wrong(files.certificate, "no PEM certificate: " + error.message());
    }
    VERGER_TRY(const auto key, read_text(files.private_key));
    context.use_private_key(net::buffer(key), net::ssl::context::pem, error);
    if (error) {
      return wrong(files.private_key, "no private key for the certificate: " + error.message());
    }
    if (SSL_CTX_check_private_key(native) != 1) {
      return wrong(files.private_key, "not the key of the certificate: " + openssl_text());
    }
  } else if (is_server) {
    return Error{Errc::kInvalidArgument, "a TLS server needs a certificate"};
  }
  if (!is_server || clients != ClientCertificate::kNotAsked) {
    VERGER_TRY(const auto roots, root_files(files.trusted_roots));
    for (const auto& path : roots) {
      VERGER_TRY(const auto pem, read_text(path));
      context.add_certificate_authority(net::buffer(pem), error);
      if (error) {
        return wrong(path, "no PEM certificate: " + error.message());
      }
    }
    if (roots.empty()) {
      return wrong(files.trusted_roots, "no trusted root there (.crt, .cer or .pem)");
    }
    auto mode = net::ssl::verify_peer;
    if (is_server && clients == ClientCertificate::kRequired) {
      mode |= net::ssl::verify_fail_if_no_peer_cert;
    }
    context.set_verify_mode(mode, error);
  }
  out->fingerprint = fingerprint_of(native);
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
  VERGER_CHECK(out->reload());
  return out;
}

Result<std::shared_ptr<TlsContext>> TlsContext::client(TlsFiles files) {
  auto impl = std::make_unique<Impl>();
  impl->files = std::move(files);
  std::shared_ptr<TlsContext> out(new TlsContext(std::move(impl)));
  VERGER_CHECK(out->reload());
  return out;
}

Result<void> TlsContext::reload() {
  VERGER_TRY(auto loaded, impl_->load());
  const std::lock_guard lock(impl_->mutex);
  impl_->loaded = std::move(loaded);
  return {};
}

std::string TlsContext::fingerprint() const { return impl_->current()->fingerprint; }

}  // namespace verger::http
