#include "controller/operations/certificates/change_check.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/certificates/pem_text.h"

namespace verger::controller::certificate_change {
namespace {

using certificates::FileSeen;
using certificates::Finding;
using certificates::LintNode;
using certificates::Severity;

/// By SHA-256 of the certificates in it; those that cannot be read are none.
std::set<std::string> fingerprints_of(std::string_view pem) {
  std::set<std::string> out;
  if (const auto read = certificates::read_details(pem)) {
    for (const auto& each : *read) {
      out.insert(each.info.fingerprint);
    }
  }
  return out;
}

/// Those that can be read.
std::vector<certificates::CertificateInfo> infos_of(std::string_view pem) {
  std::vector<certificates::CertificateInfo> out;
  if (const auto read = certificates::read_details(pem)) {
    for (const auto& each : *read) {
      out.push_back(each.info);
    }
  }
  return out;
}

std::string leaf_of(std::string_view chain) {
  const auto read = certificates::read_details(chain);
  return read ? read->front().info.fingerprint : std::string();
}

std::vector<RootFile> live_roots(const NodeSeen& node) {
  std::vector<RootFile> out;
  if (node.live) {
    for (const auto& root : node.live->live.roots) {
      out.push_back({root.name, root.pem});
    }
  }
  return out;
}

std::string text_of_all(const std::vector<RootFile>& roots) {
  std::string out;
  for (const auto& root : roots) {
    out += root.pem;
    if (!root.pem.empty() && !root.pem.ends_with('\n')) {
      out += '\n';
    }
  }
  return out;
}

/// nullopt: there is nothing new, or it is not known.
std::optional<NewFiles> new_files(const ChangeQuestion& question, const NodeSeen& node) {
  if (const auto found = question.next.find(node.name); found != question.next.end()) {
    return found->second;
  }
  if (!node.next) {
    return std::nullopt;
  }
  NewFiles out{.where = node.next->certificate.path, .chain = node.next->chain};
  for (const auto& root : node.next->roots) {
    out.roots.push_back({root.name, root.pem});
  }
  return out;
}

std::vector<RootFile> roots_at_end(const NewFiles& next, const NodeSeen& node) {
  return next.roots.empty() ? live_roots(node) : next.roots;
}

LintNode lint_node(const ChangeQuestion& question, const NodeSeen& node, const NewFiles& next) {
  LintNode out{.name = node.name, .addresses = node.addresses};
  if (const auto* seen = question.snapshot.find(node.name)) {
    out.version = seen->version;
    if (seen->clock) {
      out.clock_ahead = std::chrono::seconds(seen->clock->ahead_ms / 1'000);
    }
  }
  if (node.live) {
    out.reserved_common_name = node.live->reserved_common_name.value_or("");
    out.loads_ec_keys = node.live->loads_ec_keys;
  }
  if (node.configured) {
    out.reserved_common_name = node.configured->reserved_common_name;
    out.client_usage_disabled = node.configured->client_usage_disabled;
  }
  out.next.certificate = FileSeen{.path = next.where, .content = next.chain};
  for (const auto& root : roots_at_end(next, node)) {
    out.next.roots.push_back(FileSeen{.path = root.name, .content = root.pem});
  }
  if (!node.served.empty()) {
    out.served =
        certificates::ServedNow{.chain = node.served, .roots = text_of_all(live_roots(node))};
  }
  return out;
}

void add_agents_findings(const NodeSeen& node, std::vector<Finding>& to) {
  if (!node.next) {
    return;
  }
  for (const auto& each : node.next->findings) {
    to.push_back({.severity = each.severity == api::FindingSeverity::kError ? Severity::kError
                                                                            : Severity::kWarning,
                  .code = each.code,
                  .node = node.name,
                  .where = each.where,
                  .message = each.message,
                  .next = each.next});
  }
}

/// An agent that is configured with other files than its server changes what no one reads. The
/// paths may differ and lead to one file all the same: a link, a container.
void compare_paths(const NodeSeen& node, std::vector<Finding>& to) {
  if (!node.live || !node.configured) {
    return;
  }
  const auto compare = [&](std::string_view what, const std::string& agents,
                           const std::string& servers) {
    const std::filesystem::path of_agent(agents);
    const std::filesystem::path of_server(servers);
    // A relative one is so to a directory that only the server knows.
    if (agents.empty() || !of_server.is_absolute() ||
        of_agent.lexically_normal() == of_server.lexically_normal()) {
      return;
    }
    to.push_back({.severity = Severity::kWarning,
                  .code = "agent-other-files",
                  .node = node.name,
                  .where = agents,
                  .message = fmt::format("its agent changes this {}, and the server's options name "
                                         "{}: unless both are one, the server will not follow",
                                         what, servers),
                  .next = "compare the options of server and agent (docs/operations/agents.md)"});
  };
  const auto& live = node.live->live;
  compare("certificate", live.certificate.path, node.configured->certificate_file);
  compare("key", live.key.path, node.configured->private_key_file);
  compare("directory of roots", live.roots_path, node.configured->trusted_roots);
}

planner::CertificateNodeFacts facts_of(const NodeSeen& node, const std::optional<NewFiles>& next) {
  planner::CertificateNodeFacts out;
  out.name = node.name;
  if (node.live) {
    out.change_problem = node.live->change_problem;
  } else {
    out.change_problem = node.live_problem;
  }
  if (const auto shown = certificates::read_details(node.served)) {
    out.serial = shown->front().info.serial;
    out.common_name = shown->front().info.common_name;
    out.not_after = shown->front().info.not_after;
  }
  if (!next) {
    return out;
  }
  if (const auto leaf = certificates::read_details(next->chain)) {
    const auto& info = leaf->front().info;
    out.next_serial = info.serial;
    out.next_common_name = info.common_name;
    out.next_not_after = info.not_after;
    out.leaf_changes = info.fingerprint != leaf_of(node.served) || !node.live ||
                       info.fingerprint != leaf_of(node.live->live.chain);
  }
  out.roots_change = fingerprints_of(text_of_all(roots_at_end(*next, node))) !=
                     fingerprints_of(text_of_all(live_roots(node)));
  return out;
}

/// Those behind a leaf, which help a node to accept other leaves.
std::set<std::string> intermediates_of(std::string_view chain) {
  return fingerprints_of(certificates::intermediates_pem(chain));
}

/// Of all nodes: a node has to trust what issued the others' leaves, too, and to have the
/// intermediates, since as clients they show their leaves alone.
void compare_roots(const std::vector<NodeSeen>& nodes, const std::map<std::string, NewFiles>& next,
                   planner::CertificateFacts& facts) {
  std::set<std::string> wanted;
  std::set<std::string> wanted_between;
  for (const auto& [name, files] : next) {
    wanted.merge(fingerprints_of(text_of_all(files.roots)));
    wanted_between.merge(intermediates_of(files.chain));
  }
  for (const auto& node : nodes) {
    const auto found = next.find(node.name);
    if (found == next.end() || !node.live) {
      continue;
    }
    const auto now = fingerprints_of(text_of_all(live_roots(node)));
    const auto later = fingerprints_of(text_of_all(roots_at_end(found->second, node)));
    facts.new_roots = facts.new_roots || !std::ranges::includes(now, later) ||
                      !std::ranges::includes(now, wanted);
    facts.old_roots_go = facts.old_roots_go || !std::ranges::includes(later, now);
    if (!found->second.chain.empty()) {
      const auto between = intermediates_of(node.live->live.chain);
      facts.new_roots = facts.new_roots || !std::ranges::includes(between, wanted_between);
      facts.old_roots_go = facts.old_roots_go ||
                           !std::ranges::includes(intermediates_of(found->second.chain), between);
    }
  }
}

}  // namespace

bool ChangeAnswer::passed() const {
  return std::ranges::none_of(
      findings, [](const Finding& each) { return each.severity == Severity::kError; });
}

std::string text_of(const Finding& finding) {
  return fmt::format(
      "{}: {}{}{}; {}", finding.code, finding.node.empty() ? "" : finding.node + ": ",
      finding.where.empty() ? "" : finding.where + ": ", finding.message, finding.next);
}

std::string roots_in(std::string_view pem) {
  constexpr std::string_view kEnd = "-----END CERTIFICATE-----";
  std::string out;
  while (true) {
    const auto end = pem.find(kEnd);
    if (end == std::string_view::npos) {
      return out;
    }
    const auto one = pem.substr(0, end + kEnd.size());
    const auto read = certificates::read_details(one);
    if (read && read->front().is_self_signed) {
      out += fmt::format("{}\n", one.substr(one.find("-----BEGIN")));
    }
    pem.remove_prefix(one.size());
  }
}

std::set<std::string> issuers_now(const std::vector<NodeSeen>& nodes) {
  std::set<std::string> out;
  for (const auto& node : nodes) {
    if (const auto chain = certificates::read_details(node.served)) {
      for (const auto& each : *chain) {
        out.insert(each.info.issuer);
      }
    }
  }
  return out;
}

std::vector<RootFile> next_roots(const NodeSeen& node, const std::set<std::string>& issuers,
                                 std::string_view wanted, std::string_view name) {
  const auto now = live_roots(node);
  const auto known = fingerprints_of(text_of_all(now));
  std::vector<RootFile> out;
  const auto read = certificates::read_details(wanted);
  if (!read) {
    return out;
  }
  std::set<std::string> new_ones;
  for (const auto& each : *read) {
    new_ones.insert(each.info.fingerprint);
  }
  if (std::ranges::includes(known, new_ones)) {
    return out;
  }
  for (const auto& root : now) {
    const auto present = certificates::read_details(root.pem);
    const bool goes =
        present && std::ranges::all_of(*present, [&](const auto& each) {
          return issuers.contains(each.info.subject) && !new_ones.contains(each.info.fingerprint);
        });
    if (!goes) {
      out.push_back(root);
    }
  }
  // A name that no present file has: the file of an old root stays as it is until it goes.
  out.push_back({fmt::format("{}-{}.crt", name, read->front().info.fingerprint.substr(0, 8)),
                 std::string(wanted)});
  return out;
}

ChangeAnswer check_change(const ChangeQuestion& question) {
  ChangeAnswer out;
  certificates::LintInput input{
      .now = question.now,
      .window = std::chrono::duration_cast<std::chrono::seconds>(question.window)};
  std::map<std::string, NewFiles> next;
  for (const auto& node : question.nodes) {
    add_agents_findings(node, out.findings);
    compare_paths(node, out.findings);
    const auto files = new_files(question, node);
    out.facts.nodes.push_back(facts_of(node, files));
    if (files) {
      next.emplace(node.name, *files);
      out.later.push_back({.node = node.name,
                           .chain = infos_of(files->chain),
                           .roots = infos_of(text_of_all(roots_at_end(*files, node)))});
    }
    // What its agent could not read, it has said; of what is yet to be signed only the roots may be
    // known.
    const bool said = node.next && !node.next->findings.empty();
    if (files && !(files->chain.empty() && (said || question.next.contains(node.name)))) {
      input.nodes.push_back(lint_node(question, node, *files));
    }
    if (!node.served.empty()) {
      input.others.push_back(FileSeen{.path = node.name, .content = node.served});
    }
    for (const auto& root : live_roots(node)) {
      input.others.push_back(FileSeen{.path = root.name, .content = root.pem});
    }
  }
  compare_roots(question.nodes, next, out.facts);
  // What goes is kept until all have changed, also where nothing new has to be trusted first.
  input.trust_first = out.facts.new_roots || out.facts.old_roots_go;
  if (!input.nodes.empty()) {
    auto report = certificates::lint(input);
    // That a leaf stays is a fact of the plan.
    std::erase_if(report.findings,
                  [](const Finding& each) { return each.code == "certificate-unchanged"; });
    for (auto& each : report.findings) {
      const bool said = std::ranges::any_of(out.findings, [&each](const Finding& known) {
        return known.code == each.code && known.node == each.node;
      });
      if (!said) {
        out.findings.push_back(std::move(each));
      }
    }
    out.stages = std::move(report.stages);
  }
  return out;
}

}  // namespace verger::controller::certificate_change
