#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/types.h"
#include "nodeagent/certificates/openssl.h"

namespace verger::certificates {

/// Why no chain leads from a leaf to a trusted root.
struct ChainFault {
  int error = 0;       ///< X509_V_ERR_...
  int depth = 0;       ///< 0: the leaf
  const X509* at{};    ///< one of the given certificates; null where OpenSSL names none
  std::string text{};  ///< OpenSSL's, for people
};

/// nullopt: a chain leads from chain.front(), through the others, to one of `roots`.
/// `purpose`: X509_PURPOSE_..., 0: any. `at`: the time for which dates are checked; nullopt: now.
/// Nothing but `roots` is trusted, and nothing is downloaded.
std::optional<ChainFault> verify_chain(const std::vector<Certificate>& chain,
                                       const std::vector<Certificate>& roots, int purpose = 0,
                                       std::optional<Ticks> at = std::nullopt);

/// The same of `leaf`, through any of `between`.
std::optional<ChainFault> verify_leaf(const X509* leaf, const std::vector<X509*>& between,
                                      const std::vector<Certificate>& roots, int purpose = 0,
                                      std::optional<Ticks> at = std::nullopt);

/// That no issuer of a certificate is known.
bool is_missing_issuer(int error);

}  // namespace verger::certificates
