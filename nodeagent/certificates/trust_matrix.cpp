#include "nodeagent/certificates/trust_matrix.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <utility>

#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/certificates/detail/node_rules.h"
#include "nodeagent/certificates/detail/verify_chain.h"
#include "nodeagent/certificates/openssl.h"

namespace verger::certificates {
namespace {

/// A node in one state, read; empty where the state is not known.
struct Side {
  std::vector<Certificate> chain;
  std::vector<Certificate> roots;
  CertificateInfo leaf;
  bool may_trust_more = false;  ///< old roots that were not read
};

/// `more`: a chain whose intermediates are behind this one, too.
Result<Side> read_side(const std::string& chain, const std::string& roots,
                       const std::string& more = {}) {
  Side out;
  VERGER_TRY(out.chain, read_certificate_list(chain));
  if (!more.empty()) {
    VERGER_TRY(auto others, read_certificate_list(more));
    std::move(others.begin() + 1, others.end(), std::back_inserter(out.chain));
  }
  VERGER_TRY(out.roots, read_certificate_list(roots));
  out.leaf = describe(out.chain.front().get());
  return out;
}

Result<Side> side_of(const TrustNode& node, TrustState state) {
  if (state == TrustState::kNotKnown) {
    return Side{};
  }
  if (!node.old) {
    VERGER_TRY(auto out, read_side(node.next.chain, node.next.roots));
    out.may_trust_more = state == TrustState::kNewLeaf;
    return out;
  }
  const auto both = node.old->roots + node.next.roots;
  switch (state) {
    case TrustState::kNotKnown:
      break;
    case TrustState::kOld:
      return read_side(node.old->chain, node.old->roots);
    case TrustState::kTrustsBoth:
      return read_side(node.old->chain, both, node.next.chain);
    case TrustState::kNewLeaf:
      return read_side(node.next.chain, both, node.old->chain);
    case TrustState::kNew:
      return read_side(node.next.chain, node.next.roots);
  }
  std::unreachable();
}

/// Where a node is that should be in `state`: before its new leaf, nothing is known of one that was
/// not read.
TrustState seen_state(const TrustNode& node, TrustState state) {
  const bool of_old = state == TrustState::kOld || state == TrustState::kTrustsBoth;
  return of_old && !node.old ? TrustState::kNotKnown : state;
}

struct Placed {
  const TrustNode* node;
  TrustState state;
  Side side;
};

void add_intermediates(std::vector<X509*>& to, const Side& of) {
  for (std::size_t i = 1; i < of.chain.size(); ++i) {
    to.push_back(of.chain[i].get());
  }
}

/// Why `to` does not accept the leaf of `from`. A server shows its whole chain; as a client it
/// shows its leaf alone (docs/operations/certificates.md). Who verifies has its own intermediates
/// as well.
std::string not_chained(const Placed& from, const Placed& to, bool as_client, int purpose,
                        Ticks now) {
  const auto* leaf = from.side.chain.front().get();
  std::vector<X509*> between;
  add_intermediates(between, to.side);
  const auto with_own = verify_leaf(leaf, between, to.side.roots, purpose, now);
  add_intermediates(between, from.side);
  const auto fault = verify_leaf(leaf, between, to.side.roots, purpose, now);
  if (fault) {
    return fault->text;
  }
  return as_client && with_own
             ? fmt::format(
                   "as a client it shows its leaf alone, and {} does not have the "
                   "intermediate {} behind its own",
                   to.node->name, describe(leaf).issuer)
             : std::string();
}

TrustCell cell_of(const Placed& from, const Placed& to, Ticks now) {
  TrustCell not_known{.from = from.node->name,
                      .from_state = from.state,
                      .to = to.node->name,
                      .to_state = to.state,
                      .known = false};
  if (from.state == TrustState::kNotKnown || to.state == TrustState::kNotKnown) {
    return not_known;
  }
  auto out = not_known;
  out.known = true;
  const int client_purpose = to.node->client_usage_needed ? X509_PURPOSE_SSL_CLIENT : 0;
  out.not_as_server = not_chained(from, to, false, X509_PURPOSE_SSL_SERVER, now);
  out.not_as_client = not_chained(from, to, true, client_purpose, now);
  if (to.side.may_trust_more && !out.holds()) {
    return not_known;
  }
  if (out.not_as_server.empty()) {
    const auto missing = addresses_not_covered(from.side.chain.front().get(), from.node->addresses);
    if (!missing.empty()) {
      out.not_as_server = fmt::format("its names lack {}", missing.front());
    }
  }
  const auto& reserved = to.node->reserved_common_name.empty() ? to.side.leaf.common_name
                                                               : to.node->reserved_common_name;
  if (out.not_as_client.empty() && !common_name_fits(reserved, from.side.leaf.common_name)) {
    out.not_as_client = fmt::format("its common name \"{}\" marks no node there (reserved: \"{}\")",
                                    from.side.leaf.common_name, reserved);
    out.common_name_only = out.not_as_server.empty();
  }
  return out;
}

/// One step of the way; `name` as in TrustStage.
struct Step {
  const char* name;
  TrustState before;
  TrustState after;
};

Result<TrustStage> stage_of(const std::vector<TrustNode>& nodes, const Step& step, bool only_known,
                            Ticks now) {
  std::vector<Placed> placed;
  for (const auto& node : nodes) {
    std::set<TrustState> states{seen_state(node, step.before), seen_state(node, step.after)};
    if (only_known) {
      states.erase(TrustState::kNotKnown);
    }
    for (const auto state : states) {
      VERGER_TRY(auto side, side_of(node, state));
      placed.push_back({.node = &node, .state = state, .side = std::move(side)});
    }
  }
  TrustStage out{.name = step.name};
  for (const auto& from : placed) {
    for (const auto& to : placed) {
      if (from.node != to.node) {
        out.cells.push_back(cell_of(from, to, now));
      }
    }
  }
  return out;
}

}  // namespace

std::string_view text_of(TrustState state) {
  switch (state) {
    case TrustState::kNotKnown:
      return "not known";
    case TrustState::kOld:
      return "old";
    case TrustState::kTrustsBoth:
      return "trusts both";
    case TrustState::kNewLeaf:
      return "new leaf";
    case TrustState::kNew:
      return "new";
  }
  std::unreachable();
}

bool TrustStage::holds() const { return std::ranges::all_of(cells, &TrustCell::holds); }

Result<std::vector<TrustStage>> trust_matrix(const std::vector<TrustNode>& nodes, bool trust_first,
                                             Ticks now) {
  const bool none_read =
      std::ranges::none_of(nodes, [](const TrustNode& node) { return node.old.has_value(); });
  const auto steps =
      trust_first
          ? std::vector<Step>{{"trust both", TrustState::kOld, TrustState::kTrustsBoth},
                              {"new leaves", TrustState::kTrustsBoth, TrustState::kNewLeaf},
                              {"drop the old roots", TrustState::kNewLeaf, TrustState::kNew}}
          : std::vector<Step>{{"switch", TrustState::kOld, TrustState::kNew}};
  std::vector<TrustStage> out;
  for (const auto& step : steps) {
    VERGER_TRY(auto stage, stage_of(nodes, step, none_read && !trust_first, now));
    out.push_back(std::move(stage));
  }
  return out;
}

}  // namespace verger::certificates
