#include "nodeagent/certificates/lint.h"

#include <algorithm>
#include <fmt/format.h>
#include <openssl/err.h>
#include <set>

#include "nodeagent/certificates/detail/lint_parts.h"
#include "nodeagent/certificates/detail/verify_chain.h"

namespace verger::certificates {
namespace {

std::string pem_of_all(const std::vector<Certificate>& certificates) {
  std::string out;
  for (const auto& each : certificates) {
    out += to_pem(each.get()).value_or("");
  }
  return out;
}

void add_copies(std::vector<Certificate>& to, std::string_view pem) {
  if (auto read = read_certificate_list(pem)) {
    std::ranges::move(*read, std::back_inserter(to));
  }
}

/// Everything that was given, whose ever it is: to name what is missing elsewhere.
std::vector<Certificate> all_known(const LintInput& input, const std::vector<ReadNode>& nodes) {
  std::vector<Certificate> out;
  for (const auto& file : input.others) {
    add_copies(out, file.content);
  }
  for (const auto& node : nodes) {
    add_copies(out, pem_of_all(node.chain) + pem_of_all(node.roots));
    if (node.node->served) {
      add_copies(out, node.node->served->chain);
      add_copies(out, node.node->served->roots);
    }
  }
  return out;
}

/// The roots from which the served chain comes: a node does not load a leaf that its roots do not
/// accept, so it trusts these at least.
std::string roots_of_served(const ServedNow& served, const std::vector<Certificate>& known) {
  const auto chain = read_certificate_list(served.chain);
  std::set<std::string> roots;
  for (const auto& each : known) {
    const bool self_signed = X509_self_signed(each.get(), 0) == 1;
    ERR_clear_error();
    if (!chain || !self_signed) {
      continue;
    }
    std::vector<Certificate> alone;
    add_copies(alone, to_pem(each.get()).value_or(""));
    // An expired leaf still comes from its root.
    const auto begun = ticks_of(X509_get0_notBefore(chain->front().get()));
    if (!verify_chain(*chain, alone, 0, begun ? std::optional(*begun) : std::nullopt)) {
      roots.insert(to_pem(each.get()).value_or(""));
    }
  }
  std::string out;
  for (const auto& root : roots) {
    out += root;
  }
  return out;
}

void check_unchanged(const ReadNode& read, Findings& findings) {
  const auto served = read_certificate(read.node->served->chain);
  if (served && describe(served->get()).fingerprint == read.leaf.fingerprint) {
    findings.warning("certificate-unchanged", read.node->next.certificate.path,
                     "the node shows this certificate already: nothing would change",
                     "put the new certificate there");
  }
}

std::string text_of(const TrustCell& cell) {
  return fmt::format("{} ({}) is refused by {} ({}) {}: {}", cell.from, text_of(cell.from_state),
                     cell.to, text_of(cell.to_state),
                     cell.not_as_server.empty() ? "as a client" : "as a server",
                     cell.not_as_server.empty() ? cell.not_as_client : cell.not_as_server);
}

/// Nodes that would not accept each other on the way. What is wrong with the new files themselves
/// has been said.
void check_trust(const std::vector<TrustStage>& stages, const LintInput& input,
                 std::vector<Finding>& findings) {
  Findings of_all(findings, "");
  for (const auto& stage : stages) {
    const auto broken = std::ranges::count_if(stage.cells, &TrustCell::refused);
    if (broken == 0) {
      continue;
    }
    const auto first = std::ranges::find_if(stage.cells, &TrustCell::refused);
    of_all.error(
        "trust-gap", "",
        fmt::format(
            "in the stage \"{}\" nodes refuse each other in {} of {} cases, for example: {}",
            stage.name, broken, stage.cells.size(), text_of(*first)),
        input.trust_first
            ? "give every node a set of roots that accepts old and new certificates"
            : "trust the old and the new root on every node first, with the new intermediates "
              "behind the present leaves, reload, then change the leaves, and drop the old root "
              "and intermediates last (--trust-first checks that order)");
  }
}

/// The way from certificates that were not read. Of a set of which none was read, only new ones are
/// compared, unless that way is what is to be checked.
void check_way_known(const LintInput& input, std::vector<Finding>& findings) {
  const auto read = [](const LintNode& node) { return node.served.has_value(); };
  if (!input.trust_first && std::ranges::none_of(input.nodes, read)) {
    return;
  }
  for (const auto& node : input.nodes) {
    if (!read(node)) {
      Findings(findings, node.name)
          .warning("served-not-read", "",
                   "what it shows and trusts now was not read, so whether the others and it accept "
                   "each other until it has its new certificate is not known",
                   fmt::format("give --node {}=URL with its URL, unless the node does not run yet",
                               node.name));
    }
  }
}

/// Nodes of one set whose new common names do not mark each other.
void check_same_name(const std::vector<ReadNode>& nodes, std::vector<Finding>& findings) {
  for (const auto& node : nodes) {
    const auto other = std::ranges::find_if(nodes, [&](const ReadNode& each) {
      return !common_name_fits(reserved_name_of(*each.node, each.leaf.common_name),
                               node.leaf.common_name);
    });
    if (other != nodes.end() && other->node != node.node) {
      Findings(findings, node.node->name)
          .error("common-name-differs", node.node->next.certificate.path,
                 fmt::format("its common name \"{}\" marks no node for {}, whose new one is \"{}\"",
                             node.leaf.common_name, other->node->name, other->leaf.common_name),
                 "issue all nodes of a cluster with the same common name");
      return;
    }
  }
}

void check_together(const LintInput& input, const std::vector<ReadNode>& nodes,
                    const std::vector<Certificate>& known, LintReport& report) {
  std::vector<TrustNode> sides;
  for (const auto& read : nodes) {
    const auto& node = *read.node;
    TrustNode side{.name = node.name,
                   .addresses = node.addresses,
                   .reserved_common_name = node.reserved_common_name,
                   .client_usage_needed = needs_client_usage(node),
                   .next = {.chain = pem_of_all(read.chain), .roots = pem_of_all(read.roots)}};
    if (!node.version.empty() && !takes_changed_common_name(node)) {
      side.reserved_common_name = reserved_name_of(node, read.leaf.common_name);
    }
    if (node.served) {
      auto roots =
          node.served->roots.empty() ? roots_of_served(*node.served, known) : node.served->roots;
      if (roots.empty()) {
        Findings(report.findings, node.name)
            .error("served-roots-unknown", "",
                   "the root of the certificate that the node shows now is none of those given, so "
                   "what the node trusts is not known",
                   "give its trusted roots (--current-roots)");
        return;
      }
      side.old = ShownAndTrusted{.chain = node.served->chain, .roots = std::move(roots)};
    }
    sides.push_back(std::move(side));
  }
  auto stages = trust_matrix(sides, input.trust_first, input.now);
  if (!stages) {
    Findings(report.findings, "")
        .error("served-unreadable", "", stages.error().message, "look at what the nodes show");
    return;
  }
  report.stages = *std::move(stages);
}

}  // namespace

bool LintReport::passed() const {
  return std::ranges::none_of(
      findings, [](const Finding& each) { return each.severity == Severity::kError; });
}

LintReport lint(const LintInput& input) {
  LintReport out;
  std::vector<ReadNode> nodes;
  for (const auto& node : input.nodes) {
    Findings findings(out.findings, node.name);
    nodes.push_back(read_new_files(node, findings));
  }
  const auto known = all_known(input, nodes);
  bool all_read = !nodes.empty();
  for (const auto& read : nodes) {
    if (read.chain.empty() || read.roots.empty()) {
      all_read = false;
      continue;
    }
    Findings findings(out.findings, read.node->name);
    check_node(read, nodes, known, input, findings);
    if (read.node->served) {
      check_unchanged(read, findings);
    }
  }
  if (nodes.empty()) {
    Findings(out.findings, "")
        .error("nothing-to-check", "", "there is no folder of a node with new files",
               "give a directory with one folder per node");
  }
  if (all_read) {
    if (out.passed()) {
      check_same_name(nodes, out.findings);
    }
    const bool files_good = out.passed();
    check_way_known(input, out.findings);
    check_together(input, nodes, known, out);
    if (files_good) {
      check_trust(out.stages, input, out.findings);
    }
  }
  return out;
}

}  // namespace verger::certificates
