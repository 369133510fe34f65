#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace verger::controller {

/// Begins every bootstrap token, so that nothing else is taken for one.
inline constexpr std::string_view kBootstrapTokenMark = "verger_bootstrap_";
/// A client that would read the bootstrap token by itself sends a nonce of at most
/// kBootstrapNonceLimit characters in this header. The refusal names the file, and carries
/// hmac_sha256(token, nonce): the client shows what it read only where the other end knows it
/// already.
inline constexpr std::string_view kBootstrapNonceHeader = "Verger-Bootstrap-Nonce";
inline constexpr std::size_t kBootstrapNonceLimit = 64;

/// An admin's token that was made before the controller first began, by `vergerd init`.
struct FirstToken {
  std::string name;
  std::string id;      ///< as in "verger_<id>_<secret>"
  std::string secret;  ///< the part behind the id
  friend bool operator==(const FirstToken&, const FirstToken&) = default;
};

/// The secret that opens the API, as an admin's token does, until the first token is created.
class BootstrapToken {
 public:
  virtual ~BootstrapToken() = default;
  /// The whole text; made unless it is there. Errors: those of where it is kept.
  virtual Result<std::string> take() = 0;
  /// The first token exists: this one is no longer valid, and need not be kept.
  virtual void drop() = 0;
  /// Where no token has been created: one that takes the place of the bootstrap token from the
  /// first request on; nullopt: none was prepared. Errors: it is there and cannot be used.
  virtual Result<std::optional<FirstToken>> first() { return std::optional<FirstToken>(); }
  /// The file's path, for people and programs of this machine.
  [[nodiscard]] virtual std::string place() const = 0;
};

}  // namespace verger::controller
