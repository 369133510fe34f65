#include "planner/certificates/renewal.h"

#include <fmt/format.h>

#include "engine/base/clock.h"
#include "planner/certificates/certificates_policy.h"
#include "planner/policy.h"

namespace verger::planner::detail {
namespace {

constexpr std::int64_t kShares = 1'000;

/// 0 to kShares: FNV-1a of the name, so that it is the same after a restart and on a standby.
std::int64_t jitter_of(std::string_view cluster) {
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (const char letter : cluster) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 1'099'511'628'211U;
  }
  // The low bits of names that differ in their last letter are alike.
  return static_cast<std::int64_t>((hash >> 20U) % (kShares + 1));
}

/// nullopt: its lifetime is not known.
std::optional<Ticks> renewed_from(const CertificateSeen& leaf, const CertificatesPolicy& wanted,
                                  std::string_view cluster) {
  const auto lifetime = leaf.not_after.value() - leaf.not_before.value();
  if (leaf.not_before.value() <= 0 || lifetime <= 0) {
    return std::nullopt;
  }
  const auto percent = lifetime / 100;
  return Ticks(leaf.not_before.value() + percent * wanted.renew_at_percent -
               percent * wanted.renew_jitter_percent / kShares * jitter_of(cluster));
}

}  // namespace

Need need_of_certificates(const ClusterSnapshot& snapshot, const Policy& policy) {
  const auto& wanted = certificates_of(policy);
  Need out;
  std::string first;  // the node whose leaf is renewed first
  Ticks its_end;
  for (const auto& node : snapshot.nodes) {
    const auto* served = node.served_certificate();
    if (served == nullptr || served->chain.empty()) {
      continue;
    }
    const auto& leaf = served->chain.front();
    if (!out.deadline || leaf.not_after < *out.deadline) {
      out.deadline = leaf.not_after;
      out.ends = fmt::format("the certificate of {}", node.name);
    }
    const auto from = renewed_from(leaf, wanted, snapshot.cluster);
    if (from && (!out.needed_at || *from < *out.needed_at)) {
      out.needed_at = from;
      first = node.name;
      its_end = leaf.not_after;
    }
  }
  if (wanted.renew_at_percent == 0) {
    out.needed_at = snapshot.taken_at;
  }
  if (out.needed_at && snapshot.taken_at < *out.needed_at) {
    out.not_yet = fmt::format(
        "nothing is to be renewed before {}: the certificate of {} is the first, and ends at {}",
        format_ticks(*out.needed_at), first, format_ticks(its_end));
  }
  return out;
}

}  // namespace verger::planner::detail
