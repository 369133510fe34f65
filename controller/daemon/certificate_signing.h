#pragma once

#include <chrono>

#include "controller/operations/certificates/signer.h"
#include "engine/base/file_system.h"
#include "nodeagent/http/timers.h"

namespace verger::controller {

/// vergerd's own: authorities are files of one directory, commands programs of another.
///
///   NAME.crt       the authority's certificate, those above it behind it, the root last
///   NAME.key       its key, PEM, encrypted perhaps; missing where a command signs
///   NAME.password  of an encrypted key: its first line
///
/// A command gets the cluster's and the node's name as arguments, the request (PEM) on its standard
/// input, and writes the certificate and those above it (PEM) to its standard output.
class CertificateSigning final : public CertificateSigner {
 public:
  struct Options {
    Path authorities{};                       ///< empty: there are none
    Path commands{};                          ///< empty: no command is run
    std::chrono::milliseconds limit{60'000};  ///< of a command, which is then killed
  };
  /// `timers` outlives it and its coroutines.
  CertificateSigning(Options options, http::Timers& timers)
      : options_(std::move(options)), timers_(timers) {}

  [[nodiscard]] Result<std::string> issuer(const SignerName& by) const override;
  boost::asio::awaitable<Result<std::string>> sign(SigningOrder order) override;

 private:
  [[nodiscard]] Result<certificates::SigningAuthority> authority(const SignerName& by) const;

  Options options_;
  http::Timers& timers_;
};

}  // namespace verger::controller
