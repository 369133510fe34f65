#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/err.h>

#include "engine/base/clock.h"
#include "nodeagent/certificates/detail/lint_parts.h"
#include "nodeagent/certificates/detail/node_rules.h"
#include "nodeagent/certificates/issuing.h"
#include "nodeagent/certificates/key.h"

namespace verger::certificates {
namespace {

constexpr std::int64_t kWarnDays = 30;  // as servers do
constexpr std::int64_t kTicksOfDay = 86'400 * kTicksPerSecond;

std::int64_t ticks_in(std::chrono::seconds length) { return length.count() * kTicksPerSecond; }

void check_key(const ReadNode& read, const std::vector<ReadNode>& all, Findings& findings) {
  const auto* shown = X509_get0_pubkey(read.chain.front().get());
  const auto& file = read.node->next.certificate.path;
  if (shown != nullptr && is_weak(shown)) {
    findings.error("key-weak", file, fmt::format("its key is {}", kind_of(shown)),
                   "make a key of RSA 2048 bits or more");
  } else if (shown != nullptr && !is_rsa(shown) && !read.node->loads_ec_keys) {
    findings.error("key-type", file,
                   fmt::format("its key is {}; servers load RSA keys alone", kind_of(shown)),
                   "make a certificate with an RSA key (--key-type rsa-2048)");
  }
  if (read.key == nullptr ||
      X509_check_private_key(read.chain.front().get(), read.key.get()) == 1) {
    return;
  }
  ERR_clear_error();
  const auto other = std::ranges::find_if(all, [&](const ReadNode& each) {
    return each.node != read.node && !each.chain.empty() &&
           X509_check_private_key(each.chain.front().get(), read.key.get()) == 1;
  });
  ERR_clear_error();
  findings.error("key-mismatch", read.node->next.key->path,
                 other == all.end()
                     ? fmt::format("it is not the key of the certificate {}", file)
                     : fmt::format("it is the key of the certificate of {}, not of {}",
                                   other->node->name, file),
                 "put the key there that was made with this certificate");
}

void check_dates(const ReadNode& read, const LintInput& input, Findings& findings) {
  const auto& file = read.node->next.certificate.path;
  const auto* leaf = read.chain.front().get();
  const auto from = ticks_of(X509_get0_notBefore(leaf));
  const auto until = ticks_of(X509_get0_notAfter(leaf));
  if (!from || !until) {
    findings.error("certificate-unreadable", file, "its dates cannot be read",
                   "have the certificate issued again");
    return;
  }
  const auto local = Ticks(input.now.value() + ticks_in(read.node->clock_ahead));
  const auto ahead = read.node->clock_ahead.count();
  if (*until <= input.now) {
    findings.error("certificate-expired", file, fmt::format("it ended on {}", read.leaf.not_after),
                   "have it issued again");
  } else if (*from > input.now) {
    findings.error("certificate-not-yet-valid", file,
                   fmt::format("it is valid from {} on, and now is {}", read.leaf.not_before,
                               format_ticks(input.now)),
                   "wait until then, or issue it with --not-before-skew; look at the clock of the "
                   "machine that issued it");
  } else if (*from > local || *until <= local) {
    findings.error("clock-differs", file,
                   fmt::format("it is valid here and not on the node, whose clock is {} s {}",
                               ahead < 0 ? -ahead : ahead, ahead < 0 ? "behind" : "ahead"),
                   "set the node's clock (NTP)");
  } else if (until->value() <= input.now.value() + ticks_in(input.window)) {
    findings.error("certificate-ends-in-window", file,
                   fmt::format("it ends on {}, within the {} s that the change may take",
                               read.leaf.not_after, input.window.count()),
                   "have it issued for longer");
  } else if (until->value() <= input.now.value() + kWarnDays * kTicksOfDay) {
    findings.warning(
        "certificate-ends-soon", file,
        fmt::format("it ends on {}, in less than {} days", read.leaf.not_after, kWarnDays),
        "have it issued for longer");
  }
  const auto ends_before = [&](const Certificate& issuer) {
    const auto end = ticks_of(X509_get0_notAfter(issuer.get()));
    return end && *end < *until &&
           X509_NAME_cmp(X509_get_subject_name(issuer.get()), X509_get_issuer_name(leaf)) == 0;
  };
  for (const auto* list : {&read.chain, &read.roots}) {
    if (const auto issuer = std::ranges::find_if(*list, ends_before); issuer != list->end()) {
      const auto ca = describe(issuer->get());
      findings.error("certificate-outlives-ca", file,
                     fmt::format("it ends on {}, its CA {} before it, on {}", read.leaf.not_after,
                                 ca.subject, ca.not_after),
                     "renew the CA, or issue the certificate for shorter");
    }
  }
  if (ahead > 300 || ahead < -300) {
    findings.warning("clock-off", "",
                     fmt::format("the node's clock is {} s {}", ahead < 0 ? -ahead : ahead,
                                 ahead < 0 ? "behind" : "ahead"),
                     "set the node's clock (NTP)");
  }
}

void check_addresses(const ReadNode& read, const std::vector<ReadNode>& all, Findings& findings) {
  const auto& file = read.node->next.certificate.path;
  auto* leaf = read.chain.front().get();
  if (read.leaf.names.empty()) {
    findings.error("san-missing", file, "it has no subject alternative names: it marks no node",
                   "issue it with --ip-addresses and --dns-names");
    return;
  }
  const auto missing = addresses_not_covered(leaf, read.node->addresses);
  if (missing.empty()) {
    return;
  }
  const auto other = std::ranges::find_if(all, [&](const ReadNode& each) {
    return each.node != read.node && !each.node->addresses.empty() &&
           addresses_not_covered(leaf, each.node->addresses).empty();
  });
  if (other != all.end() && missing.size() == read.node->addresses.size()) {
    findings.error("files-swapped", file,
                   fmt::format("it is a certificate for {} ({}), not for {}", other->node->name,
                               fmt::join(read.leaf.names, ", "), read.node->name),
                   "give each node its own files");
    return;
  }
  findings.error("san-lacks-address", file,
                 fmt::format("it is not for {}, which the node advertises; it is for {}",
                             fmt::join(missing, ", "), fmt::join(read.leaf.names, ", ")),
                 "issue it with all addresses that gossip shows");
}

void check_usages(const ReadNode& read, Findings& findings) {
  const auto& file = read.node->next.certificate.path;
  auto* leaf = read.chain.front().get();
  if (!has_server_usage(leaf)) {
    findings.error("usage-server-missing", file, "its extended key usage lacks serverAuth",
                   "have it issued with serverAuth and clientAuth");
  }
  if (!has_client_usage(leaf) && needs_client_usage(*read.node)) {
    findings.error("usage-client-missing", file,
                   "its extended key usage lacks clientAuth: other nodes refuse it as a client's",
                   "have it issued with serverAuth and clientAuth");
  }
  const auto version = parse_server_version(read.node->version);
  if (!has_key_usage(leaf) && (!version || *version >= ServerVersion{24, 2, 0})) {
    findings.error("key-usage-missing", file,
                   "its key usage lacks digitalSignature with keyEncipherment (or keyAgreement), "
                   "which 24.2 and later require of a node",
                   "have it issued with both");
  }
}

void check_common_name(const ReadNode& read, Findings& findings) {
  const auto& file = read.node->next.certificate.path;
  const auto& name = read.leaf.common_name;
  const auto reserved = reserved_name_of(*read.node, name);
  std::string served;
  if (read.node->served) {
    if (const auto now = read_certificate(read.node->served->chain)) {
      served = describe(now->get()).common_name;
    }
  }
  if (!served.empty() && served != name && !takes_changed_common_name(*read.node)) {
    findings.error(
        "common-name-changed", file,
        fmt::format("the common name changes from \"{}\" to \"{}\", which {} does not take by a "
                    "reload",
                    served, name,
                    read.node->version.empty() ? "a server of unknown version perhaps"
                                               : "server " + read.node->version),
        "keep the common name; from 23.10 on it can be changed");
    return;
  }
  if (!common_name_fits(reserved, name)) {
    findings.error("common-name-mismatch", file,
                   fmt::format("its common name \"{}\" does not fit the reserved one, \"{}\": "
                               "other nodes refuse it",
                               name, reserved),
                   fmt::format("issue it with --common-name {}", reserved));
    return;
  }
  if (!served.empty() && served != name && read.node->reserved_common_name.empty()) {
    findings.warning(
        "common-name-window", file,
        fmt::format("the common name changes from \"{}\" to \"{}\" without a reserved name that "
                    "fits both: new connections between old and new nodes are refused",
                    served, name),
        "set CertificateReservedNodeCommonName to a pattern that fits both first, or change all "
        "nodes within 10 minutes");
  }
}

}  // namespace

std::optional<ServerVersion> parse_server_version(const std::string& text) {
  std::array<int, 3> parts{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto read = std::from_chars(at, end, parts.at(i));
    if (read.ec != std::errc()) {
      return i == 0 ? std::nullopt : std::optional(ServerVersion{parts[0], parts[1], parts[2]});
    }
    at = read.ptr;
    if (at == end || *at != '.') {
      break;
    }
    ++at;
  }
  return ServerVersion{parts[0], parts[1], parts[2]};
}

bool takes_changed_common_name(const LintNode& node) {
  const auto version = parse_server_version(node.version);
  return version && *version >= ServerVersion{23, 10, 0};
}

bool needs_client_usage(const LintNode& node) {
  const auto version = parse_server_version(node.version);
  const bool can_do_without =
      version && ((version->major == 24 && *version >= ServerVersion{24, 10, 12}) ||
                  *version >= ServerVersion{26, 0, 2});
  return !(node.client_usage_disabled && can_do_without);
}

std::string reserved_name_of(const LintNode& node, const std::string& own_common_name) {
  if (!node.reserved_common_name.empty()) {
    return node.reserved_common_name;
  }
  return node.version.empty() || takes_changed_common_name(node) ? own_common_name
                                                                 : std::string(kNodeCommonName);
}

void check_node(const ReadNode& read, const std::vector<ReadNode>& all,
                const std::vector<Certificate>& known, const LintInput& input, Findings& findings) {
  if (X509_check_ca(read.chain.front().get()) != 0) {
    findings.error("leaf-is-ca", read.node->next.certificate.path,
                   fmt::format("the first certificate, {}, is a CA's", read.leaf.subject),
                   "the node's own certificate comes first, then the intermediates");
    return;
  }
  check_key(read, all, findings);
  check_dates(read, input, findings);
  check_addresses(read, all, findings);
  check_usages(read, findings);
  check_common_name(read, findings);
  check_chain(read, known, input, findings);
}

}  // namespace verger::certificates
