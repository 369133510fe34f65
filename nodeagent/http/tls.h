#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "engine/base/result.h"
#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/certificates/tls_files.h"
#include "nodeagent/http/client.h"

namespace verger::certificates {
struct TlsMaterial;
}  // namespace verger::certificates

namespace verger::http {

using certificates::CertificateInfo;
using certificates::TlsFiles;

/// What a TLS server shows to a new connection now, trusted or not. Error: kUnavailable.
net::awaitable<Result<CertificateInfo>> served_certificate(net::any_io_executor executor,
                                                           Endpoint from,
                                                           std::chrono::milliseconds deadline);

enum class ClientCertificate : std::uint8_t {
  kNotRequested,
  kOptional,  ///< none is fine; one that does not chain to our roots ends the handshake
  kRequired,
};

/// One side's TLS settings: 1.2 and 1.3, peers verified against `trusted_roots` (a client also
/// checks the server's name or address). A reload concerns new handshakes; open connections stay
/// with what they began with. Safe from any thread.
///
/// Errors of making and reloading: kNotFound, kIo: a file; kInvalidArgument: not PEM, a key that
/// does not fit, no root, or a chain that its own roots do not accept. The message names the file.
class TlsContext {
 public:
  static Result<std::shared_ptr<TlsContext>> server(TlsFiles files, ClientCertificate clients);
  static Result<std::shared_ptr<TlsContext>> client(TlsFiles files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// Reads the files again. After an error everything is as before.
  Result<void> reload();
  /// The contexts of one program, which share their files: read once, and taken by all of them or
  /// by none. From now on they use `files`.
  static Result<void> reload_all(const std::vector<std::shared_ptr<TlsContext>>& contexts,
                                 const TlsFiles& files);
  /// The same with what was read from `files`.
  static Result<void> reload_all(const std::vector<std::shared_ptr<TlsContext>>& contexts,
                                 const TlsFiles& files, const certificates::TlsMaterial& material);
  /// SHA-256 of the leaf that new handshakes show, lower-case hex; empty where there is none.
  [[nodiscard]] std::string fingerprint() const;
  /// The leaf that new handshakes show; everything empty where there is none.
  [[nodiscard]] CertificateInfo certificate() const;

  struct Impl;
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  explicit TlsContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace verger::http
