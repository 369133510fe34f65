#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/err.h>

#include "nodeagent/certificates/detail/lint_parts.h"
#include "nodeagent/certificates/detail/verify_chain.h"

namespace verger::certificates {
namespace {

bool is_self_signed(const Certificate& certificate) {
  const bool out = X509_self_signed(certificate.get(), 0) == 1;
  ERR_clear_error();
  return out;
}

/// The last one of the bundle that is above the leaf: the one whose issuer is missing.
const X509* top_of(const std::vector<Certificate>& chain) {
  const X509* at = chain.front().get();
  for (std::size_t steps = 0; steps < chain.size(); ++steps) {
    const auto above = std::ranges::find_if(chain, [&](const Certificate& each) {
      return each.get() != at &&
             X509_NAME_cmp(X509_get_subject_name(each.get()), X509_get_issuer_name(at)) == 0;
    });
    if (above == chain.end()) {
      break;
    }
    at = above->get();
  }
  return at;
}

/// The first one of those above the leaf that is no CA. OpenSSL takes one with keyCertSign alone,
/// which servers do not.
const X509* issuer_without_flag(const ReadNode& read) {
  for (const auto* list : {&read.chain, &read.roots}) {
    for (const auto& each : *list) {
      const bool issuer = std::ranges::any_of(read.chain, [&](const Certificate& below) {
        return below.get() != each.get() && X509_NAME_cmp(X509_get_subject_name(each.get()),
                                                          X509_get_issuer_name(below.get())) == 0;
      });
      if (issuer && (X509_get_extension_flags(each.get()) & EXFLAG_CA) == 0) {
        return each.get();
      }
    }
  }
  return nullptr;
}

void say_missing_issuer(const ReadNode& read, const std::vector<Certificate>& known,
                        Findings& findings) {
  const auto& file = read.node->next.certificate.path;
  const X509* top = top_of(read.chain);
  const auto about = describe(top);
  const auto issuer = std::ranges::find_if(known, [&](const Certificate& each) {
    return X509_NAME_cmp(X509_get_subject_name(each.get()), X509_get_issuer_name(top)) == 0 &&
           X509_verify(const_cast<X509*>(top), X509_get0_pubkey(each.get())) == 1;
  });
  ERR_clear_error();
  if (issuer == known.end()) {
    findings.error(
        "issuer-unknown", file,
        fmt::format("{} was issued by {}, which is neither behind it in the file nor among the "
                    "trusted roots",
                    about.subject, about.issuer),
        "if that is an intermediate, append it to the certificate file; if it is a root, it has "
        "to be trusted by every node first");
  } else if (!is_self_signed(*issuer)) {
    findings.error("chain-lacks-intermediate", file,
                   fmt::format("the intermediate {} is missing behind the leaf: a node shows its "
                               "file as it is, and its peers download nothing",
                               about.issuer),
                   "append the certificate of the intermediate to the file");
  } else {
    findings.error("root-unknown", file,
                   fmt::format("it comes from the root {}, which is not among the node's new "
                               "trusted roots",
                               about.issuer),
                   "add that root on every node, reload, and only then use this certificate");
  }
}

}  // namespace

void check_chain(const ReadNode& read, const std::vector<Certificate>& known,
                 const LintInput& input, Findings& findings) {
  const auto& file = read.node->next.certificate.path;
  for (std::size_t i = 1; i < read.chain.size(); ++i) {
    if (is_self_signed(read.chain[i])) {
      findings.error("chain-has-root", file,
                     fmt::format("{} is self-signed: a server refuses a root behind the leaf",
                                 describe(read.chain[i].get()).subject),
                     "take the root out of the certificate file; it belongs to the trusted roots");
      return;
    }
  }
  if (read.roots.empty()) {
    return;  // which has its own finding
  }
  if (const X509* none = issuer_without_flag(read); none != nullptr) {
    findings.error("ca-flag-missing", file,
                   fmt::format("{} issued a certificate of this chain, and is no CA "
                               "(basicConstraints CA:TRUE is missing)",
                               describe(none).subject),
                   "have the certificate issued by a CA");
    return;
  }
  const auto fault = verify_chain(read.chain, read.roots, 0, input.now);
  if (!fault) {
    return;
  }
  const auto at = fault->at == nullptr ? read.leaf : describe(fault->at);
  if (is_missing_issuer(fault->error)) {
    say_missing_issuer(read, known, findings);
    return;
  }
  switch (fault->error) {
    case X509_V_ERR_INVALID_CA:
    case X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
    case X509_V_ERR_INVALID_NON_CA:
      findings.error("ca-flag-missing", file,
                     fmt::format("{} issued a certificate of this chain, and may not (key usage "
                                 "keyCertSign)",
                                 at.subject),
                     "have the certificate issued by a CA");
      return;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      if (fault->depth > 0) {  // the leaf's dates have rules of their own
        findings.error("ca-not-valid-now", file,
                       fmt::format("the CA {} is valid from {} to {}, which is not now", at.subject,
                                   at.not_before, at.not_after),
                       "renew the CA first");
      }
      return;
    default:
      findings.error("chain-invalid", file, fmt::format("{}: {}", at.subject, fault->text),
                     "have the certificate issued again");
  }
}

}  // namespace verger::certificates
