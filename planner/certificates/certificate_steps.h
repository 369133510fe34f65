#pragma once

#include <string_view>

/// Names that plans of a change of certificates share with the code that carries them out. They are
/// parts of plans, hashes and journals. What is called "change" at the agents is the run's id.
namespace verger::planner::certificate_steps {

// --- kinds of steps, and their parameters; all times are milliseconds
/// On the cluster, of source csr: keys and requests are made on the nodes, signed, and the set is
/// brought to all agents. Its SHA-256 is the run's value kSetValue.
/// Parameters: `authority` or `signCommand`, `days`, `keyType`, `nodes`: {NAME: {"commonName",
/// "dnsNames": [], "ipAddresses": []}}.
inline constexpr std::string_view kObtain = "certificate_obtain";
/// On the cluster: what is to be staged is checked against what each node shows and trusts now. Its
/// undo touches nothing: it proves that the way back has ended where all began.
/// Parameters: `commonNameChanges`, `dropsOldRoots`, `serials`: {NAME: serial} of the new leaves
/// that the plan is about, as far as known; `source`, `trustFirst`, `windowMs`.
inline constexpr std::string_view kCheck = "certificate_check";
/// On a node: its new files beside the live ones, and copies of those. Undone by discarding both.
/// Parameters: `serial` (where it is known), `source`.
inline constexpr std::string_view kStage = "certificate_stage";
/// On a node: the files of one phase become the live ones and are read again. Undone by restoring
/// exactly what was there.
/// Parameters: `phase`, `reload`; of phase leaf also `serial` (where it is known), `windowMs`, and
/// `beginWithinMs`: it must not begin later than this after the window has opened.
inline constexpr std::string_view kSwitch = "certificate_switch";
/// On the cluster: new handshakes with every node and between all nodes, in both roles.
/// Parameters: `phase`: what must hold on all nodes now; `serials`: {NAME: serial}, as far as
/// known; `windowMs` with phase leaf.
inline constexpr std::string_view kProve = "certificate_prove";
/// On the cluster: gossip, leader and replication for `watchMs`.
inline constexpr std::string_view kWatch = "certificate_watch";

// --- phases, in this order
/// Old and new roots are trusted, the old leaf is shown.
inline constexpr std::string_view kTrustPhase = "trust";
/// The new leaf is shown.
inline constexpr std::string_view kLeafPhase = "leaf";
/// Only the new roots are trusted.
inline constexpr std::string_view kDropPhase = "drop";

// --- values of the run
/// {"sha256"}: the manifest of the set that kObtain made.
inline constexpr std::string_view kSetValue = "certificate_set";
/// {"opened_at"}: ISO-8601, journaled with the intent of the first switch of a leaf.
inline constexpr std::string_view kWindowValue = "certificate_window";

// --- `source`: {"kind": "csr"} | {"kind": "files", "set": SHA-256} |
// {"kind": "path", "certificate": PATH, "key": PATH, "roots": PATH}, empty where not given,
// "{node}" in it

// The way back. All nodes are undone at once (Executor: undo waits for no other node), so the kinds
// have to keep the nodes together by themselves:
// - drop undone: at once.
// - leaf undone on a node: once every node that can be reached trusts the old roots again.
// - trust undone on a node: once all nodes show their former leaf. While that is not known, old
//   and new roots stay trusted, and the undo says which node keeps it from its end.

}  // namespace verger::planner::certificate_steps
