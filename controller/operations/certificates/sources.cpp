#include "controller/operations/certificates/sources.h"

#include <algorithm>

#include "controller/operations/certificates/change_support.h"
#include "nodeagent/certificates/authority.h"
#include "nodeagent/certificates/certificate_details.h"

namespace verger::controller::certificate_change {
namespace {

constexpr std::int64_t kTicksOfDay = 86'400 * kTicksPerSecond;

std::string with_node(std::string path, const std::string& node) {
  constexpr std::string_view kPlace = "{node}";
  for (auto at = path.find(kPlace); at != std::string::npos; at = path.find(kPlace, at)) {
    path.replace(at, kPlace.size(), node);
    at += node.size();
  }
  return path;
}

void add_name(std::vector<std::string>& to, const std::string& name) {
  if (std::ranges::find(to, name) == to.end()) {
    to.push_back(name);
  }
}

}  // namespace

Result<api::CertificateSource> source_for(const planner::Json::Object& source,
                                          const std::string& set, const std::string& node) {
  const auto kind = text_member(source, "kind");
  if (kind == "csr" || kind == "files") {
    const auto found = kind == "csr" ? set : text_member(source, "set");
    if (found.empty()) {
      return Error{Errc::kInvalidArgument, "no certificates have been obtained yet"};
    }
    return api::CertificateSource{.set = found, .node = node};
  }
  if (kind == "path") {
    return api::CertificateSource{
        .certificate_path = with_node(text_member(source, "certificate"), node),
        .key_path = with_node(text_member(source, "key"), node),
        .roots_path = with_node(text_member(source, "roots"), node)};
  }
  return Error{Errc::kInvalidArgument, "this controller does not know the source \"" + kind + "\""};
}

std::map<std::string, api::CertificateSource> sources_of(const planner::CertificatesPolicy& policy,
                                                         const std::vector<ClusterNode>& nodes) {
  std::map<std::string, api::CertificateSource> out;
  for (const auto& node : nodes) {
    switch (policy.source) {
      case planner::CertificateSource::kCsr:
        break;
      case planner::CertificateSource::kFiles:
        out[node.name] = {.set = policy.set, .node = node.name};
        break;
      case planner::CertificateSource::kPath:
        out[node.name] = {.certificate_path = with_node(policy.certificate_path, node.name),
                          .key_path = with_node(policy.key_path, node.name),
                          .roots_path = with_node(policy.roots_path, node.name)};
        break;
    }
  }
  return out;
}

void add_names(const NodeSeen& node, certificates::CertificateTerms& terms) {
  if (const auto shown = certificates::terms_of_certificate(node.served)) {
    terms.dns_names = shown->dns_names;
    terms.ip_addresses = shown->ip_addresses;
  }
  for (const auto& address : node.addresses) {
    add_name(is_address(address) ? terms.ip_addresses : terms.dns_names, address);
  }
  std::ranges::sort(terms.dns_names);
  std::ranges::sort(terms.ip_addresses);
}

void set_dates(Ticks now, std::int64_t days, certificates::CertificateTerms& terms) {
  const auto skew = std::chrono::duration_cast<std::chrono::seconds>(certificates::kClocksDiffer);
  terms.not_before = Ticks(now.value() - skew.count() * kTicksPerSecond);
  terms.not_after = Ticks(now.value() + days * kTicksOfDay);
}

}  // namespace verger::controller::certificate_change
