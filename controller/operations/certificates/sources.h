#pragma once

#include <map>
#include <string>

#include "controller/operations/certificates/nodes_seen.h"
#include "controller/operations/certificates/signer.h"
#include "planner/certificates/certificates_policy.h"
#include "planner/json.h"

/// Where new certificates come from, for one node, and what a request is about.
namespace verger::controller::certificate_change {

/// Of a plan's parameter `source` (planner/certificates/certificate_steps.h); `set`: the run's own,
/// of source csr. Error: kInvalidArgument: no source.
Result<api::CertificateSource> source_for(const planner::Json::Object& source,
                                          const std::string& set, const std::string& node);
/// Of a policy whose files are there before the plan is made; nothing of source csr.
std::map<std::string, api::CertificateSource> sources_of(const planner::CertificatesPolicy& policy,
                                                         const std::vector<ClusterNode>& nodes);

/// Names and addresses sorted, each once: of the present leaf, and all that are advertised.
void add_names(const NodeSeen& node, certificates::CertificateTerms& terms);
/// From a few minutes ago on, since clocks differ.
void set_dates(Ticks now, std::int64_t days, certificates::CertificateTerms& terms);

}  // namespace verger::controller::certificate_change
