#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "engine/base/result.h"
#include "nodeagent/http/client.h"

namespace verger::http {

/// Where the material of one side is: PEM, certificates DER too.
struct TlsFiles {
  /// Leaf first, then intermediates. Empty: a client that shows none.
  std::string certificate{};
  std::string private_key{};
  /// Of an encrypted private key.
  std::string private_key_password{};
  /// A file with one or more roots, or a directory of .crt, .cert, .cer, .pem and .der files.
  /// Nothing else is trusted, not the system's roots either. Intermediates among them are no roots,
  /// and refused with check_own_chain.
  std::string trusted_roots{};
  /// The common name, or a pattern such as "*.db.example.com", by which a node's certificate is
  /// known (Peer::certificate_is_node). Empty: that of the own certificate.
  std::string reserved_common_name{};
  /// A node's rule: the own certificate must chain to `trusted_roots`, be valid now, have no
  /// self-signed intermediate and fit `reserved_common_name`; the roots must all be self-signed.
  bool check_own_chain = false;
  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};

/// What a certificate says of itself; nothing of it is verified.
struct CertificateInfo {
  std::string subject{};  ///< "CN=n1.example.com"
  std::string issuer{};
  std::string common_name{};
  std::string serial{};       ///< upper-case hex
  std::string fingerprint{};  ///< SHA-256, lower-case hex
  std::vector<std::string> names{};
  std::vector<std::string> uris{};  ///< among the subject's alternative names
  std::string not_before{};         ///< ISO 8601, UTC
  std::string not_after{};
  /// Of one that was served: those it was shown with, up to a root where that was among them.
  std::vector<CertificateInfo> issuers{};
};

/// The certificates of a file, in its order: of a node's, leaf first. Errors as TlsContext.
Result<std::vector<CertificateInfo>> read_certificates(const std::string& path);

/// What a TLS server shows to a new connection now, trusted or not. Error: kUnavailable.
net::awaitable<Result<CertificateInfo>> served_certificate(net::any_io_executor executor,
                                                           Endpoint from,
                                                           std::chrono::milliseconds deadline);

enum class ClientCertificate : std::uint8_t {
  kNotAsked,
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
