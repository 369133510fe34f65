#include "nodeagent/operations/certificates/certificate_proof.h"

#include <fmt/format.h>

#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/certificates/pem_text.h"

namespace verger::agent {
namespace {

using api::CertificatePhase;
using Verdict = CertificateProof::Verdict;

/// Any answer will do: TLS has accepted the certificate before anything is read.
constexpr const char* kAnyRoute = "/info";
constexpr std::chrono::milliseconds kHandshakeLimit{5'000};

certificates::CertificateInfo served_leaf(const std::string& chain) {
  const auto read = certificates::read_details(chain);
  return read ? read->front().info : certificates::CertificateInfo{};
}

CertificateProof no_answer(const Error& error) { return {.text = error.message}; }

/// Whether a client's certificate is accepted; nullopt: that was not seen.
struct Acceptance {
  std::optional<bool> accepted{};
  std::string text{};
  std::string serial{};
};

net::awaitable<Acceptance> acceptance(decltype(CertificateAccess::shake_hands) shake_hands,
                                      http::Endpoint server,
                                      std::optional<http::ClientMaterial> shown) {
  if (!shown) {
    co_return Acceptance{.text = "no copy of the certificate and its key is left"};
  }
  const auto seen =
      co_await shake_hands(std::move(server), *std::move(shown), kAnyRoute, kHandshakeLimit);
  if (!seen) {
    co_return Acceptance{.text = seen.error().message};
  }
  co_return Acceptance{.accepted = seen->accepted,
                       .text = seen->not_accepted,
                       .serial = served_leaf(seen->served).serial};
}

/// The roots are those of one side: which is seen by who is accepted.
CertificateProof judge(const Acceptance& seen, bool wanted, std::string_view whose) {
  if (!seen.accepted) {
    return {.serial = seen.serial, .text = seen.text};
  }
  auto text = *seen.accepted ? fmt::format("the {} certificate is accepted as a client's", whose)
                             : fmt::format("the {} certificate is refused as a client's ({})",
                                           whose, seen.text);
  return {.verdict = *seen.accepted == wanted ? Verdict::kShown : Verdict::kNotShown,
          .serial = seen.serial,
          .text = std::move(text)};
}

net::awaitable<CertificateProof> prove_leaf(decltype(CertificateAccess::shake_hands) shake_hands,
                                            http::Endpoint server, std::string fingerprint,
                                            std::string serial) {
  const auto seen = co_await shake_hands(std::move(server), {}, kAnyRoute, kHandshakeLimit);
  if (!seen) {
    co_return no_answer(seen.error());
  }
  const auto leaf = served_leaf(seen->served);
  const bool shown = leaf.fingerprint == fingerprint;
  co_return CertificateProof{
      .verdict = shown ? Verdict::kShown : Verdict::kNotShown,
      .serial = leaf.serial,
      .text = fmt::format("a new connection is shown the certificate {}{}", leaf.serial,
                          shown ? "" : fmt::format(", not {}", serial))};
}

net::awaitable<CertificateProof> prove_answer(decltype(CertificateAccess::shake_hands) shake_hands,
                                              http::Endpoint server, std::string not_shown) {
  const auto seen = co_await shake_hands(std::move(server), {}, kAnyRoute, kHandshakeLimit);
  if (!seen) {
    co_return no_answer(seen.error());
  }
  co_return CertificateProof{.verdict = Verdict::kShown,
                             .serial = served_leaf(seen->served).serial,
                             .text = "the server took the request to reload, and answers",
                             .not_proven = std::move(not_shown)};
}

}  // namespace

std::string why_trust_is_not_shown(const FoundCertificates& live, const FoundCertificates& next) {
  const auto shown = certificates::leaf_pem(next.certificate.content);
  const auto before = certificates::intermediates_pem(live.certificate.content);
  const auto with_new = before + certificates::intermediates_pem(next.certificate.content);
  if (certificates::why_not_chained(shown + before, roots_of(live)).empty()) {
    return "the node accepts the new certificate before, too, so accepting it shows nothing";
  }
  const auto why = certificates::why_not_chained(shown + with_new, roots_of(live) + roots_of(next));
  return why.empty() ? "" : fmt::format("the new certificate is refused by the new roots: {}", why);
}

std::string why_drop_is_not_shown(const FoundCertificates& live, const FoundCertificates& next) {
  const auto shown = certificates::leaf_pem(live.certificate.content);
  const auto after = certificates::intermediates_pem(next.certificate.content);
  const auto with_old = after + certificates::intermediates_pem(live.certificate.content);
  if (certificates::why_not_chained(shown + after, roots_of(next.roots ? next : live)).empty()) {
    return "the node accepts the old certificate after, too, so no refusal can show that others "
           "went";
  }
  const auto why = certificates::why_not_chained(shown + with_old, roots_of(live));
  return why.empty() ? ""
                     : fmt::format(
                           "the old certificate is refused by the old roots, too ({}), so "
                           "its refusal shows nothing",
                           why);
}

net::awaitable<CertificateProof> prove(decltype(CertificateAccess::shake_hands) shake_hands,
                                       http::Endpoint server, ChangeManifest manifest,
                                       api::CertificatePhase phase, bool after,
                                       CertificateSides sides) {
  switch (phase) {
    case CertificatePhase::kLeaf:
      co_return co_await prove_leaf(std::move(shake_hands), std::move(server),
                                    after ? manifest.fingerprint : manifest.fingerprint_before,
                                    after ? manifest.serial : manifest.serial_before);
    case CertificatePhase::kTrust:
      if (!manifest.trust_not_shown.empty() || !sides.after) {
        co_return co_await prove_answer(std::move(shake_hands), std::move(server),
                                        manifest.trust_not_shown.empty()
                                            ? "no copy of the new certificate and its key is left"
                                            : manifest.trust_not_shown);
      }
      co_return judge(co_await acceptance(std::move(shake_hands), std::move(server), sides.after),
                      after, "new");
    case CertificatePhase::kDrop:
      break;
  }
  if (!manifest.drop_not_shown.empty() || !sides.before) {
    co_return co_await prove_answer(std::move(shake_hands), std::move(server),
                                    manifest.drop_not_shown.empty()
                                        ? "no copy of the old certificate and its key is left"
                                        : manifest.drop_not_shown);
  }
  if (after) {
    const auto control = co_await acceptance(shake_hands, server, sides.after);
    if (control.accepted != true) {
      co_return CertificateProof{
          .verdict = control.accepted ? Verdict::kNotShown : Verdict::kNoAnswer,
          .serial = control.serial,
          .text =
              fmt::format("the new certificate is not accepted as a client's: {}", control.text)};
    }
  }
  co_return judge(co_await acceptance(std::move(shake_hands), std::move(server), sides.before),
                  !after, "old");
}

}  // namespace verger::agent
