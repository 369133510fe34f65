#include "controller/operations/certificates/preflight.h"

#include <algorithm>
#include <fmt/format.h>

#include "controller/operations/certificates/change_check.h"
#include "controller/operations/certificates/sources.h"
#include "nodeagent/certificates/key.h"
#include "nodeagent/certificates/signed_answer.h"

namespace verger::controller::certificate_change {
namespace {

using certificates::Finding;
using certificates::Severity;

/// What a request of each node will be about, of source csr.
std::map<std::string, certificates::CertificateTerms> terms_of_nodes(
    const planner::CertificatesPolicy& policy, const std::vector<NodeSeen>& nodes, Ticks now) {
  std::map<std::string, certificates::CertificateTerms> out;
  for (const auto& node : nodes) {
    certificates::CertificateTerms terms;
    const auto shown = certificates::terms_of_certificate(node.served);
    terms.common_name = !policy.common_name.empty() ? policy.common_name
                        : shown                     ? shown->common_name
                                                    : std::string(certificates::kNodeCommonName);
    add_names(node, terms);
    set_dates(now, policy.days, terms);
    out.emplace(node.name, std::move(terms));
  }
  return out;
}

struct Trial {
  std::map<std::string, NewFiles> next{};
  std::vector<planner::Refusal> refusals{};
  std::vector<std::string> notes{};
};

planner::Refusal cannot_sign(std::string message) {
  return {.code = "cannot-sign",
          .node = {},
          .message = std::move(message),
          .hint =
              "correct vergerd's authorities or signing commands (docs/operations/"
              "certificates.md)"};
}

/// Certificates as they would be, of a key that is not stored: names, dates, chain and trust are
/// checked with them. A command is not run for a trial.
net::awaitable<Trial> try_signing(const planner::CertificatesPolicy& policy, std::string cluster,
                                  const std::vector<NodeSeen>& nodes,
                                  std::map<std::string, certificates::CertificateTerms> terms,
                                  CertificateSigner* signer) {
  Trial out;
  const SignerName by{.authority = policy.authority, .command = policy.sign_command};
  if (signer == nullptr) {
    out.refusals.push_back(cannot_sign("this vergerd has no authorities and no signing commands"));
    co_return out;
  }
  const auto issuer = signer->issuer(by);
  if (!issuer) {
    out.refusals.push_back(cannot_sign(issuer.error().message));
    co_return out;
  }
  if (!by.command.empty()) {
    out.notes.push_back(fmt::format(
        "the new certificates are signed by the command \"{}\": they are checked once they are "
        "there, before any node is touched",
        by.command));
    for (const auto& node : nodes) {
      auto roots = next_roots(node, issuers_now(nodes), roots_in(*issuer), policy.authority);
      out.next.emplace(node.name, NewFiles{.roots = std::move(roots)});
    }
    co_return out;
  }
  const auto type = certificates::parse_key_type(to_string(policy.key_type));
  // Of RSA the smallest will do: how long the key is changes nothing of what is checked.
  const auto key = certificates::new_private_key(
      type && text_of(*type).starts_with("ec-") ? *type : certificates::KeyType::kRsa2048, "");
  const auto issuers = issuers_now(nodes);
  for (const auto& node : nodes) {
    const auto& wanted = terms.at(node.name);
    const auto request =
        key ? certificates::make_request(*key, "", wanted) : Result<std::string>(key.error());
    if (!request) {
      out.refusals.push_back(cannot_sign(request.error().message));
      co_return out;
    }
    const auto answer = co_await signer->sign(
        {.by = by, .cluster = cluster, .node = node.name, .request = *request, .terms = wanted});
    const auto taken = answer ? certificates::take_answer(*request, wanted, *answer)
                              : Result<certificates::SignedAnswer>(answer.error());
    if (!taken) {
      out.refusals.push_back(cannot_sign(fmt::format("{}: {}", node.name, taken.error().message)));
      co_return out;
    }
    out.next.emplace(node.name,
                     NewFiles{.where = fmt::format("(to be signed by {})", policy.authority),
                              .chain = taken->chain,
                              .roots = next_roots(node, issuers, taken->roots, policy.authority)});
  }
  co_return out;
}

/// The trust matrix, stage by stage, in a line each.
void say_matrix(const ChangeAnswer& answer, planner::Preflight& out) {
  for (const auto& stage : answer.stages) {
    const auto by_name = std::ranges::count_if(
        stage.cells, [](const auto& cell) { return !cell.holds() && cell.common_name_only; });
    const auto refused = std::ranges::count_if(
        stage.cells, [](const auto& cell) { return !cell.holds() && !cell.common_name_only; });
    out.notes.push_back(fmt::format(
        "checked for the stage \"{}\": each node accepts each other one, before and after its "
        "change, in {} of {} cases{}",
        stage.name, static_cast<std::ptrdiff_t>(stage.cells.size()) - refused - by_name,
        stage.cells.size(),
        by_name > 0
            ? fmt::format("; in {} TLS works, and only the common name marks no node", by_name)
            : ""));
  }
}

void say_findings(const ChangeAnswer& answer, planner::Preflight& out) {
  for (const auto& each : answer.findings) {
    if (each.severity == Severity::kWarning) {
      out.notes.push_back(text_of(each));
      continue;
    }
    out.refusals.push_back(
        {.code = each.code,
         .node = each.node,
         .message = each.where.empty() ? each.message : each.where + ": " + each.message,
         .hint = each.next});
  }
}

}  // namespace

net::awaitable<planner::Preflight> preflight(PreflightContext context,
                                             std::shared_ptr<const OperationSettings> settings) {
  const auto& policy = planner::certificates_of(context.policy);
  planner::Preflight out;
  const auto nodes =
      co_await look_at_nodes(context.peers, sources_of(policy, context.cluster.nodes));
  for (const auto& node : nodes) {
    if (!node.next_problem.empty()) {
      out.refusals.push_back(
          {.code = "new-files-unreadable",
           .node = node.name,
           .message = node.next_problem,
           .hint = policy.source == planner::CertificateSource::kFiles
                       ? "bring the files again: verger cert rollout CLUSTER --from DIRECTORY"
                       : "look at the paths on that node"});
    }
    if (const auto* registered = context.cluster.find(node.name);
        node.served.empty() && registered != nullptr && registered->url.starts_with("https")) {
      out.refusals.push_back({.code = "not-served",
                              .node = node.name,
                              .message = node.served_problem,
                              .hint = "a change begins with nodes that answer by https"});
    }
  }
  ChangeQuestion question{.snapshot = context.snapshot,
                          .nodes = nodes,
                          .now = context.now,
                          .window = std::chrono::milliseconds(policy.window_ms)};
  std::map<std::string, certificates::CertificateTerms> terms;
  if (policy.source == planner::CertificateSource::kCsr) {
    terms = terms_of_nodes(policy, nodes, context.now);
    const bool named = !policy.authority.empty() || !policy.sign_command.empty();
    if (named && out.refusals.empty()) {
      auto trial =
          co_await try_signing(policy, context.cluster.name, nodes, terms, settings->signer.get());
      question.next = std::move(trial.next);
      std::ranges::move(trial.refusals, std::back_inserter(out.refusals));
      std::ranges::move(trial.notes, std::back_inserter(out.notes));
    }
  }
  auto answer = check_change(question);
  check_controller_trust(*context.peers, answer.later, out);
  say_findings(answer, out);
  say_matrix(answer, out);
  if (policy.new_authority && !policy.sign_command.empty() && policy.authority.empty()) {
    // Which root it is the command says in the run; what is not needed then changes no file.
    answer.facts.new_roots = true;
    answer.facts.old_roots_go = true;
  }
  for (auto& node : answer.facts.nodes) {
    if (const auto found = terms.find(node.name); found != terms.end()) {
      // A trial is no certificate: the new one is made in the run.
      node.next_serial.clear();
      node.next_not_after.clear();
      node.leaf_changes = true;
      node.next_common_name = found->second.common_name;
      node.dns_names = found->second.dns_names;
      node.ip_addresses = found->second.ip_addresses;
    }
  }
  out.facts = planner::to_json(answer.facts);
  co_return out;
}

}  // namespace verger::controller::certificate_change
