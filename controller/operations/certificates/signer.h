#pragma once

#include <string>

#include <boost/asio/awaitable.hpp>

#include "engine/base/result.h"
#include "nodeagent/certificates/issuing.h"

namespace verger::controller {

/// Who signs: an authority whose key vergerd has, or a command of its configuration. With both, the
/// command signs with the authority whose certificates are given.
struct SignerName {
  std::string authority{};
  std::string command{};
};

struct SigningOrder {
  SignerName by{};
  std::string cluster{};  ///< for the command
  std::string node{};
  std::string request{};  ///< PEM
  certificates::CertificateTerms terms{};
};

/// Signs the requests for nodes' certificates. No key leaves it.
class CertificateSigner {
 public:
  virtual ~CertificateSigner() = default;
  /// PEM: the authority's certificate and those above it; empty where they are not known before the
  /// command has signed. Whether it could sign is checked as far as that goes. Errors: kNotFound,
  /// kRefused (others may read or change its files), kInvalidArgument, kIo.
  [[nodiscard]] virtual Result<std::string> issuer(const SignerName& by) const = 0;
  /// PEM: the new certificate and what else came with it, unchecked. Errors: those of issuer();
  /// kTimeout: the command was killed.
  virtual boost::asio::awaitable<Result<std::string>> sign(SigningOrder order) = 0;
};

}  // namespace verger::controller
