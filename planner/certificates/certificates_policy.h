#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace verger::planner {

struct Operation;
struct Policy;

/// Where new certificates come from.
enum class CertificateSource : std::uint8_t {
  kCsr,    ///< keys are made on the nodes; vergerd has the requests signed
  kFiles,  ///< they were brought to the agents' file stores before the plan was made
  kPath,   ///< something else put them on the nodes
};
std::string_view to_string(CertificateSource source);
constexpr auto choices_of(CertificateSource) {
  return std::array{CertificateSource::kCsr, CertificateSource::kFiles, CertificateSource::kPath};
}

/// How a node is made to read its certificates again.
enum class CertificateReload : std::uint8_t {
  kRoute,   ///< its own route for that, with the agent's user
  kSignal,  ///< SIGHUP, from its agent
};
std::string_view to_string(CertificateReload reload);
constexpr auto choices_of(CertificateReload) {
  return std::array{CertificateReload::kRoute, CertificateReload::kSignal};
}

/// Of a new key; the names are those of `verger cert`.
enum class CertificateKey : std::uint8_t { kRsa2048, kRsa3072, kRsa4096, kEcP256, kEcP384 };
std::string_view to_string(CertificateKey key);
constexpr auto choices_of(CertificateKey) {
  return std::array{CertificateKey::kRsa2048, CertificateKey::kRsa3072, CertificateKey::kRsa4096,
                    CertificateKey::kEcP256, CertificateKey::kEcP384};
}

/// What a person wants of a change of the nodes' certificates, besides what every run has. Its
/// fields are in certificates_operation.cpp. Times are milliseconds. No field is a secret.
struct CertificatesPolicy {
  /// New certificates on all nodes inside one window, proven, or none; the stages are in
  /// plan_certificates.cpp.
  static const Operation& operation();

  CertificateSource source = CertificateSource::kCsr;
  /// Of kFiles: SHA-256 of the set's manifest, a file of the agents' stores.
  std::string set;
  /// Of kPath: files on each node, absolute; "{node}" stands for the node's name. No key: the one
  /// there is stays. No roots: those there are stay.
  std::string certificate_path;
  std::string key_path;
  std::string roots_path;
  /// Of kCsr: a CA in vergerd's directory of authorities that signs, or the name of one of its
  /// signing commands. With both the command signs, and the CA's certificates are those of its CA.
  /// The command line itself is in no plan.
  std::string authority;
  std::string sign_command;
  /// Of a signing command without `authority`: its answers may come from a root that the nodes do
  /// not trust yet. The root that it answers with is trusted then, as of any new CA.
  bool new_authority = false;
  CertificateKey key_type = CertificateKey::kRsa2048;
  std::int32_t days = 365;  ///< that a certificate signed by an authority is valid
  std::string common_name;  ///< of kCsr; empty: as now
  CertificateReload reload = CertificateReload::kRoute;
  /// Roots that are none of the new ones go after the switch; else both stay trusted.
  bool drop_old_roots = true;
  /// From the first switch of a leaf until all nodes have changed and that is proven, or all is
  /// undone: servers re-make their connections 10 minutes after they were made.
  std::int64_t window_ms = 600'000;
  /// How long the cluster is watched after that: until every connection was made anew. 0: not.
  std::int64_t watch_ms = 660'000;
  /// For making, checking and staging.
  std::int64_t obtain_deadline_ms = 3'600'000;
  /// A scheduled policy renews once so much of the lifetime of a node's leaf has passed, earlier by
  /// up to `renew_jitter_percent` of that lifetime; 0: whenever its schedule is due.
  std::int32_t renew_at_percent = 66;
  std::int32_t renew_jitter_percent = 5;
};

/// Of a policy for a change of certificates.
CertificatesPolicy& certificates_of(Policy& policy);
const CertificatesPolicy& certificates_of(const Policy& policy);

}  // namespace verger::planner
