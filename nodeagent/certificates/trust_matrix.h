#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/types.h"

/// Whether nodes accept each other while their certificates change, for each pair of nodes, in both
/// roles and at every intermediate state. Nothing is asked of a node: all of it follows from what
/// they show and trust.
namespace verger::certificates {

/// Where a node is on the way from its old to its new certificates.
enum class TrustState : std::uint8_t {
  kNotKnown,    ///< what it shows and trusts was not read
  kOld,         ///< shows the old leaf, trusts the old roots
  kTrustsBoth,  ///< shows the old leaf, trusts old and new roots; has both intermediates behind it
  kNewLeaf,     ///< shows the new leaf, trusts old and new roots; has both intermediates behind it
  kNew,         ///< shows the new leaf, trusts the new roots
};
/// "not known", "old", "trusts both", "new leaf", "new".
std::string_view text_of(TrustState state);

/// PEM.
struct ShownAndTrusted {
  std::string chain{};  ///< leaf first, then intermediates
  std::string roots{};
};

struct TrustNode {
  std::string name{};
  /// By which other nodes reach it, without ports; empty: its names are not checked.
  std::vector<std::string> addresses{};
  /// That marks nodes' certificates; empty: the common name of its own leaf.
  std::string reserved_common_name{};
  /// False: a node's certificate needs no client usage to be one (docs/operations/certificates.md).
  bool client_usage_needed = true;
  std::optional<ShownAndTrusted> old{};  ///< nullopt: not read; or it does not run yet
  ShownAndTrusted next{};
};

/// Whether `to` accepts what `from` shows.
struct TrustCell {
  std::string from{};
  TrustState from_state{};
  std::string to{};
  TrustState to_state{};
  std::string not_as_server{};    ///< why a connection from `to` to `from` fails; empty: it works
  std::string not_as_client{};    ///< why one from `from` to `to` fails; empty: it works
  bool common_name_only = false;  ///< TLS works; only the name does not mark a node for `to`
  bool known = true;  ///< false: it depends on an old state that was not read; no reasons then
  [[nodiscard]] bool holds() const {
    return known && not_as_server.empty() && not_as_client.empty();
  }
  /// By more than the common name.
  [[nodiscard]] bool refused() const { return known && !holds() && !common_name_only; }
};

struct TrustStage {
  std::string name{};  ///< "switch"; or "trust both", "new leaves", "drop the old roots"
  std::vector<TrustCell> cells{};
  [[nodiscard]] bool holds() const;  ///< all of it is known, and nothing is refused
};

/// The stages of a change: one, where each node goes from old to new at once; with `trust_first`
/// three. In each stage every node may be before or after its step while any other one is before
/// or after its own. One step of nodes none of which was read compares their new certificates
/// alone. Dates are those of `now`. Error: kInvalidArgument: no PEM.
Result<std::vector<TrustStage>> trust_matrix(const std::vector<TrustNode>& nodes, bool trust_first,
                                             Ticks now);

}  // namespace verger::certificates
