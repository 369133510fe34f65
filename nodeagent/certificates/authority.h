#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/base/types.h"

/// The authority that issues the certificates of agents and of the controller that calls them. All
/// texts are PEM; keys are EC P-256; OpenSSL's library does the work. Nothing here talks to a
/// network.
namespace verger::certificates {

inline constexpr std::string_view kAgentCommonName = "verger-agent";
inline constexpr std::string_view kControllerCommonName = "vergerd";

/// So long before it is issued a certificate begins to be valid, since clocks differ.
inline constexpr std::chrono::minutes kClocksDiffer{5};

/// The subject alternative name (URI) by which an agent is known: "urn:verger:agent:orders/n1".
std::string agent_identity(std::string_view cluster, std::string_view node);
/// "orders/n1" of the identity of that agent; empty where `identity` is no agent's.
std::string agent_of_identity(std::string_view identity);

/// SHA-256 of the first certificate of a text, lower-case hex. Error: kInvalidArgument.
Result<std::string> fingerprint_of(std::string_view pem);

/// A new key, which stays where it was made, and the request for its certificate.
struct KeyAndRequest {
  std::string key{};
  std::string request{};
};
Result<KeyAndRequest> make_key_and_request();
/// SHA-256 of the public key in a request, lower-case hex; the request is signed by that key.
/// Errors: kInvalidArgument: no request, not signed by its key, or a key too weak.
Result<std::string> key_of_request(std::string_view request);

enum class Usage : std::uint8_t { kServer, kClient };

/// What a certificate says; nothing of a request goes into it but the key.
struct Subject {
  std::string common_name{};
  std::string identity{};            ///< a URI; may be empty
  std::vector<std::string> hosts{};  ///< names and addresses a client may have in its URL
  Usage usage = Usage::kServer;
};

struct Issued {
  std::string certificate{};
  std::string serial{};  ///< upper-case hex, as everywhere
  Ticks not_before{};
  Ticks not_after{};
};

/// A self-signed root with its key, both in one file of mode 0600. Safe from any thread.
class Authority {
 public:
  /// Takes the authority in `path`; where the file is missing, makes a new one of ten years. What
  /// is there is never replaced. Errors: kRefused: others may read the file; kInvalidArgument: it
  /// holds no such pair; kIo.
  static Result<Authority> open_or_make(const Path& path, Ticks now);
  Authority(Authority&&) noexcept;
  Authority& operator=(Authority&&) noexcept;
  ~Authority();

  /// Valid from kClocksDiffer before `now`. Errors: those of key_of_request;
  /// kInvalidArgument: a host that is neither a name nor an address.
  [[nodiscard]] Result<Issued> issue(std::string_view request, const Subject& subject, Ticks now,
                                     std::chrono::seconds lifetime) const;
  [[nodiscard]] const std::string& root() const;
  [[nodiscard]] const std::string& fingerprint() const;
  [[nodiscard]] Ticks not_after() const;

 private:
  struct State;
  explicit Authority(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What a certificate says of its owner, after it was found to fit `key` and to be signed by
/// `root`. The dates are reported, not checked. Error: kInvalidArgument: it does not fit.
struct Checked {
  std::string identity{};
  std::string serial{};
  Ticks not_before{};
  Ticks not_after{};
};
Result<Checked> check_issued(std::string_view certificate, std::string_view key,
                             std::string_view root);

}  // namespace verger::certificates
