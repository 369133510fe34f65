#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/result.h"

namespace verger::http {

/// Where the material of one side is. All PEM.
struct TlsFiles {
  /// Leaf first, then intermediates. Empty: a client that shows none.
  std::string certificate{};
  std::string private_key{};
  /// A file with one or more roots, or a directory of .crt, .cer and .pem files. Nothing else is
  /// trusted, not the system's roots either.
  std::string trusted_roots{};
};

enum class ClientCertificate : std::uint8_t {
  kNotAsked,
  kOptional,  ///< none is fine; one that does not chain to our roots ends the handshake
  kRequired,
};

/// One side's TLS settings: 1.2 and 1.3, peers verified against `trusted_roots` (a client also
/// checks the server's name or address). A reload concerns new handshakes; open connections go on
/// with what they began with. Safe from any thread.
///
/// Errors of making and reloading: kNotFound, kIo: a file; kInvalidArgument: not PEM, a key that
/// does not fit, no root. The message names the file.
class TlsContext {
 public:
  static Result<std::shared_ptr<TlsContext>> server(TlsFiles files, ClientCertificate clients);
  static Result<std::shared_ptr<TlsContext>> client(TlsFiles files);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// Reads the files again. After an error everything is as before.
  Result<void> reload();
  /// SHA-256 of the leaf that new handshakes show, lower-case hex; empty where there is none.
  [[nodiscard]] std::string fingerprint() const;

  struct Impl;
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  explicit TlsContext(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace verger::http
