#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

/// What the agent interface says of a node's certificates (docs/formats/agent-interface.md,
/// "Certificates"):
///   GET  /agent/v1/certificates              NodeCertificates
///   POST /agent/v1/certificates/candidate    {"source": CertificateSource} -> CertificateFiles
///   POST /agent/v1/certificates/request      CertificateKeyRequest -> {"request": PEM}
///   POST /agent/v1/certificates/handshakes   HandshakesRequest -> {"peers": [PeerHandshake, ...]}
/// and the parameters and results of the operations certificate_stage, certificate_switch,
/// certificate_restore and certificate_discard. Certificates are PEM; no key is in any of them.
namespace verger::api {

/// The parts of a change, in the order in which they are switched. A change of the leaf alone has
/// nothing to do in the other two.
enum class CertificatePhase : std::uint8_t {
  kTrust,  ///< the new roots are added to the old ones
  kLeaf,   ///< certificate and key
  kDrop,   ///< the roots that are not among the new ones go
};
constexpr std::array<std::string_view, 3> words_of(const CertificatePhase* /*type*/) {
  return {"trust", "leaf", "drop"};
}
std::string_view to_string(CertificatePhase phase);
Result<CertificatePhase> parse_certificate_phase(std::string_view text);

/// How a server is asked to read its certificates again.
enum class ReloadBy : std::uint8_t {
  kRoute,   ///< POST /admin/reloadconfig
  kSignal,  ///< SIGHUP to its process
};
constexpr std::array<std::string_view, 2> words_of(const ReloadBy* /*type*/) {
  return {"route", "signal"};
}
std::string_view to_string(ReloadBy by);
Result<ReloadBy> parse_reload_by(std::string_view text);

/// Where an agent finds a node's new certificates: with `set` those of `node` in a CertificateSet
/// of its file store, else in files of its machine.
struct CertificateSource {
  std::string set{};  ///< SHA-256 of the set
  std::string node{};
  std::string certificate_path{};
  std::string key_path{};    ///< empty: the present key stays
  std::string roots_path{};  ///< a directory, or a file; empty: the present roots stay
  friend bool operator==(const CertificateSource&, const CertificateSource&) = default;
};

/// A file of the agents' store that says which files of the store are a node's new ones; no secret.
struct CertificateSet {
  struct Root {
    std::string name{};  ///< of the file among the roots: "ca.crt"
    std::string sha256{};
    friend bool operator==(const Root&, const Root&) = default;
  };
  struct Node {
    std::string certificate{};  ///< SHA-256
    /// SHA-256. Empty, as is `key_request`: the present key stays.
    std::string key{};
    /// The change for which the agent made the key itself (CertificateKeyRequest).
    std::string key_request{};
    std::vector<Root> roots{};  ///< all that the node trusts at the end; empty: the present ones
    friend bool operator==(const Node&, const Node&) = default;
  };
  std::map<std::string, Node> nodes{};  ///< by the name that CertificateSource gives
  friend bool operator==(const CertificateSet&, const CertificateSet&) = default;
};

struct CertificateFile {
  std::string path{};     ///< as configured or given
  std::string target{};   ///< where a link leads to, which is what is replaced; else empty
  std::string problem{};  ///< why it cannot be read; empty: it was
  std::optional<std::uint32_t> mode{};   ///< permission bits; nullopt: not known
  std::optional<std::uint32_t> owner{};  ///< user id
  friend bool operator==(const CertificateFile&, const CertificateFile&) = default;
};

enum class FindingSeverity : std::uint8_t { kError, kWarning };
constexpr std::array<std::string_view, 2> words_of(const FindingSeverity* /*type*/) {
  return {"error", "warning"};
}

/// As certificates::Finding, of what only the agent sees: keys, modes, owners, and files that are
/// no PEM.
struct CertificateFinding {
  FindingSeverity severity = FindingSeverity::kError;
  std::string code{};
  std::string where{};
  std::string message{};
  std::string next{};
  friend bool operator==(const CertificateFinding&, const CertificateFinding&) = default;
};

/// The certificates of a node on disk: its present ones, or new ones.
struct CertificateFiles {
  struct Root {
    std::string name{};
    CertificateFile file{};
    std::string pem{};  ///< empty: it cannot be read
    friend bool operator==(const Root&, const Root&) = default;
  };
  CertificateFile certificate{};
  CertificateFile key{};  ///< its path is empty where there is none, or the agent does not know it
  std::string chain{};    ///< leaf first; empty: it cannot be read
  std::string serial{};   ///< of the leaf: upper-case hex
  std::string not_after{};
  std::vector<Root> roots{};
  std::string roots_path{};
  std::string roots_problem{};        ///< why they cannot be read; empty: they were
  std::optional<bool> key_matches{};  ///< nullopt: the key was not looked at, or cannot be read
  std::string key_type{};             ///< certificates::text_of, of the key in the certificate
  bool key_encrypted = false;
  /// Of all contents together: two answers with the same digest are of the same files.
  std::string digest{};
  std::vector<CertificateFinding> findings{};
  friend bool operator==(const CertificateFiles&, const CertificateFiles&) = default;
};

/// A change that was staged on this node, until it is discarded or another one is staged.
struct CertificateChange {
  struct Phase {
    CertificatePhase phase = CertificatePhase::kLeaf;
    std::string state{};     ///< "staged", "switching", "switched", "restoring"
    std::int32_t files = 0;  ///< that it replaces, adds or removes; 0: it has nothing to do
    /// What a person runs on the node to restore what was before this phase, in this order.
    std::vector<std::string> restore_commands{};
    friend bool operator==(const Phase&, const Phase&) = default;
  };
  std::string change{};
  std::string staged_at{};
  std::string serial{};
  std::string serial_before{};
  std::vector<Phase> phases{};  ///< in their order
  friend bool operator==(const CertificateChange&, const CertificateChange&) = default;
};

/// A file with the certificate of a user, as the agent is configured.
struct UserCertificate {
  std::string path{};
  std::string pem{};      ///< the certificate alone; empty: see `problem`
  std::string problem{};  ///< why it cannot be read
  friend bool operator==(const UserCertificate&, const UserCertificate&) = default;
};

struct NodeCertificates {
  CertificateFiles live{};
  std::string served{};  ///< the chain that a new connection was shown; empty: see served_problem
  std::string served_problem{};
  /// As configured, empty for the version's default; nullopt: the agent does not know it.
  std::optional<std::string> reserved_common_name{};
  bool loads_ec_keys = false;                   ///< an embedded node; servers load RSA keys alone
  std::optional<std::uint32_t> server_owner{};  ///< user that the server runs as
  std::string change_problem{};  ///< why this agent cannot change them; empty: it can
  std::string signal_problem{};  ///< why it cannot send a signal to the server; empty: it can
  std::vector<UserCertificate> users{};
  std::optional<CertificateChange> change{};
  std::string taken_at{};  ///< by the node's clock
  friend bool operator==(const NodeCertificates&, const NodeCertificates&) = default;
};

/// Asks for a request for a certificate, of a key that the agent makes and keeps. The same change
/// again has the same key.
struct CertificateKeyRequest {
  std::string change{};
  std::string common_name{};
  std::vector<std::string> dns_names{};
  std::vector<std::string> ip_addresses{};
  std::string key_type{};  ///< certificates::text_of; empty: that of the present key
  friend bool operator==(const CertificateKeyRequest&, const CertificateKeyRequest&) = default;
};

/// Asks for new connections to peers, with the node's certificate, key and roots as they are on its
/// disk.
struct HandshakesRequest {
  struct Peer {
    std::string name{};
    std::string url{};
    friend bool operator==(const Peer&, const Peer&) = default;
  };
  std::vector<Peer> peers{};
  /// With the staged certificate in place of the present one: whether peers would accept it.
  bool staged = false;
  friend bool operator==(const HandshakesRequest&, const HandshakesRequest&) = default;
};

/// What a connection to a peer showed.
struct PeerHandshake {
  std::string name{};
  std::string served{};   ///< the chain that the peer shows; empty: see `problem`
  std::string serial{};   ///< of its leaf
  std::string problem{};  ///< why it does not answer
  /// Whether the node's roots accept what the peer shows for the address in its URL.
  std::optional<bool> trusted{};
  std::string not_trusted{};  ///< why not
  /// Whether the peer took our certificate: it answered a request on a connection that showed it.
  std::optional<bool> accepted{};
  std::string not_accepted{};  ///< why not, or why that could not be seen
  std::string shown_serial{};  ///< of the certificate that was shown to it
  friend bool operator==(const PeerHandshake&, const PeerHandshake&) = default;
};

/// Copies the new files beside the present ones. With `digest` what the source has must still be
/// what was looked at; with `serial` its leaf must have that number.
struct CertificateStage {
  std::string change{};
  CertificateSource source{};
  std::string serial{};
  std::string digest{};
  friend bool operator==(const CertificateStage&, const CertificateStage&) = default;
};
struct CertificateStaged {
  std::string serial{};
  std::string not_after{};
  std::string digest{};
  CertificateChange change{};
  friend bool operator==(const CertificateStaged&, const CertificateStaged&) = default;
};

struct CertificateSwitch {
  std::string change{};
  CertificatePhase phase = CertificatePhase::kLeaf;
  ReloadBy reload = ReloadBy::kRoute;
  friend bool operator==(const CertificateSwitch&, const CertificateSwitch&) = default;
};
/// Of certificate_switch and certificate_restore.
struct CertificateSwitched {
  CertificatePhase phase = CertificatePhase::kLeaf;
  std::int32_t files = 0;  ///< that were replaced, added or removed; 0: there was nothing to do
  std::string serial{};    ///< that new connections see now
  std::string serial_before{};
  std::string at{};          ///< when the first file was replaced; empty: none was
  std::string proven{};      ///< what new connections showed, for people
  std::string not_proven{};  ///< what they cannot show, and why; empty: nothing is open
  friend bool operator==(const CertificateSwitched&, const CertificateSwitched&) = default;
};

struct CertificateRestore {
  std::string change{};
  CertificatePhase phase = CertificatePhase::kLeaf;
  friend bool operator==(const CertificateRestore&, const CertificateRestore&) = default;
};
struct CertificateDiscard {
  std::string change{};
  friend bool operator==(const CertificateDiscard&, const CertificateDiscard&) = default;
};

// JSON, as the interface has it. Readers' error: kCorruption, saying where the text is not of that
// shape; of sets, requests and parameters kInvalidArgument.
std::string to_text(const CertificateSet& set);
std::string to_text(const CertificateFiles& files);
std::string to_text(const CertificateChange& change);
std::string to_text(const NodeCertificates& certificates);
/// {"source": ...}
std::string to_text(const CertificateSource& source);
std::string to_text(const CertificateKeyRequest& request);
std::string to_text(const HandshakesRequest& request);
/// {"peers": [...]}
std::string to_text(const std::vector<PeerHandshake>& peers);
std::string to_text(const CertificateStage& parameters);
std::string to_text(const CertificateSwitch& parameters);
std::string to_text(const CertificateRestore& parameters);
std::string to_text(const CertificateDiscard& parameters);
std::string to_text(const CertificateStaged& result);
std::string to_text(const CertificateSwitched& result);

Result<CertificateSet> parse_certificate_set(std::string_view text);
Result<CertificateFiles> parse_certificate_files(std::string_view body);
Result<NodeCertificates> parse_node_certificates(std::string_view body);
Result<CertificateSource> parse_certificate_source(std::string_view body);
Result<CertificateKeyRequest> parse_certificate_key_request(std::string_view body);
Result<HandshakesRequest> parse_handshakes_request(std::string_view body);
Result<std::vector<PeerHandshake>> parse_peer_handshakes(std::string_view body);
Result<CertificateStage> parse_certificate_stage(std::string_view parameters);
Result<CertificateSwitch> parse_certificate_switch(std::string_view parameters);
Result<CertificateRestore> parse_certificate_restore(std::string_view parameters);
Result<CertificateDiscard> parse_certificate_discard(std::string_view parameters);
Result<CertificateStaged> parse_certificate_staged(std::string_view result);
Result<CertificateSwitched> parse_certificate_switched(std::string_view result);

}  // namespace verger::api
