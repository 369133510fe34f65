#pragma once

#include <optional>
#include <string>

#include "nodeagent/operations/certificates/change_files.h"

namespace verger::agent {

/// What new connections to a server can prove about the files that it uses. Its answer to a reload
/// proves nothing: it comes before anything is read.
///
/// Leaf: the server shows the one certificate or the other. Of the key nothing is left open, since
/// the handshake needs it; of intermediates behind the leaf nothing is reported where the server
/// does not send them.
///
/// Roots are not shown to anyone. But a server ends the handshake with a client whose certificate
/// does not chain to its roots (node-interface.md, 4.3), so certificates of known origin tell them
/// apart:
///   trust   the new leaf is accepted as a client's, which the roots before would not have done
///   drop    the old leaf is refused, while the new one is accepted: so it is not the server that
///           refuses everything
/// and, when they are restored, the contrary. Nothing is proven by that where both sets of roots
/// accept (or both refuse, as with a certificate that has expired) the certificate in question:
/// then the phase ends with the reload alone, and says so.
struct CertificateProof {
  enum class Verdict : std::uint8_t {
    kShown,
    kNotShown,  ///< it answers, and uses the other files
    kNoAnswer,
  };
  Verdict verdict = Verdict::kNoAnswer;
  std::string serial{};      ///< that the server shows
  std::string text{};        ///< what was seen, for people
  std::string not_proven{};  ///< with kShown: what stays open, and why
};

/// The two certificates with their keys; nullopt: no copy is left.
struct CertificateSides {
  std::optional<http::ClientMaterial> before{};
  std::optional<http::ClientMaterial> after{};
};

/// Why a client's certificate cannot tell the roots of `live` from those of `live` and `next`
/// together, or from those of `next`; empty: it can.
std::string why_trust_is_not_shown(const FoundCertificates& live, const FoundCertificates& next);
std::string why_drop_is_not_shown(const FoundCertificates& live, const FoundCertificates& next);

/// Whether the server uses the files of a phase (`after`), or those before it. `shake_hands` is
/// called before the first wait and between waits: it must outlive the call, or fail.
net::awaitable<CertificateProof> prove(decltype(CertificateAccess::shake_hands) shake_hands,
                                       http::Endpoint server, ChangeManifest manifest,
                                       api::CertificatePhase phase, bool after,
                                       CertificateSides sides);

}  // namespace verger::agent
