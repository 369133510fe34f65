#include "nodeagent/certificates/trust_matrix.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/certificates/detail/node_rules.h"
#include "nodeagent/certificates/detail/verify_chain.h"
#include "nodeagent/certificates/openssl.h"

namespace verger::certificates {
namespace {

/// A node in one state, read.
struct Side {
  std::vector<Certificate> chain;
  std::vector<Certificate> roots;
  CertificateInfo leaf;
};

Result<Side> read_side(const std::string& chain, const std::string& roots) {
  Side out;
  VERGER_TRY(out.chain, read_certificate_list(chain));
  VERGER_TRY(out.roots, read_certificate_list(roots));
  out.leaf = describe(out.chain.front().get());
  return out;
}

Result<Side> side_of(const TrustNode& node, TrustState state) {
  if (!node.old) {
    return read_side(node.next.chain, node.next.roots);
  }
  const auto both = node.old->roots + node.next.roots;
  switch (state) {
    case TrustState::kOld:
      return read_side(node.old->chain, node.old->roots);
    case TrustState::kTrustsBoth:
      return read_side(node.old->chain, both);
    case TrustState::kNewLeaf:
      return read_side(node.next.chain, both);
    case TrustState::kNew:
      return read_side(node.next.chain, node.next.roots);
  }
  std::unreachable();
}

struct Placed {
  const TrustNode* node;
  TrustState state;
  Side side;
};

TrustCell cell_of(const Placed& from, const Placed& to, Ticks now) {
  TrustCell out{
      .from = from.node->name, .from_state = from.state, .to = to.node->name, .to_state = to.state};
  const auto not_chained = [&](int purpose) {
    const auto fault = verify_chain(from.side.chain, to.side.roots, purpose, now);
    return fault ? fault->text : std::string();
  };
  out.not_as_server = not_chained(X509_PURPOSE_SSL_SERVER);
  if (out.not_as_server.empty()) {
    const auto missing = addresses_not_covered(from.side.chain.front().get(), from.node->addresses);
    if (!missing.empty()) {
      out.not_as_server = fmt::format("its names lack {}", missing.front());
    }
  }
  out.not_as_client = not_chained(to.node->client_usage_needed ? X509_PURPOSE_SSL_CLIENT : 0);
  const auto& reserved = to.node->reserved_common_name.empty() ? to.side.leaf.common_name
                                                               : to.node->reserved_common_name;
  if (out.not_as_client.empty() && !common_name_fits(reserved, from.side.leaf.common_name)) {
    out.not_as_client = fmt::format("its common name \"{}\" marks no node there (reserved: \"{}\")",
                                    from.side.leaf.common_name, reserved);
    out.common_name_only = out.not_as_server.empty();
  }
  return out;
}

Result<TrustStage> stage_of(const std::vector<TrustNode>& nodes, std::string name,
                            TrustState before, TrustState after, Ticks now) {
  std::vector<Placed> placed;
  for (const auto& node : nodes) {
    for (const auto state : {before, after}) {
      if (!node.old && state == before) {
        continue;  // it comes with the new files
      }
      VERGER_TRY(auto side, side_of(node, state));
      placed.push_back({.node = &node, .state = state, .side = std::move(side)});
    }
  }
  TrustStage out{.name = std::move(name)};
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
  struct Step {
    const char* name;
    TrustState before;
    TrustState after;
  };
  const auto steps =
      trust_first
          ? std::vector<Step>{{"trust both", TrustState::kOld, TrustState::kTrustsBoth},
                              {"new leaves", TrustState::kTrustsBoth, TrustState::kNewLeaf},
                              {"drop the old roots", TrustState::kNewLeaf, TrustState::kNew}}
          : std::vector<Step>{{"switch", TrustState::kOld, TrustState::kNew}};
  std::vector<TrustStage> out;
  for (const auto& step : steps) {
    VERGER_TRY(auto stage, stage_of(nodes, step.name, step.before, step.after, now));
    out.push_back(std::move(stage));
  }
  return out;
}

}  // namespace verger::certificates
