#include "planner/certificates/certificate_refusals.h"

#include <fmt/format.h>

#include "planner/detail/gate_checks.h"
#include "planner/detail/refusal_list.h"

namespace verger::planner::detail {
namespace {

/// Servers before it do not take a leaf with another common name than that of their peers.
constexpr int kChangesCommonName = 2'310;

class RefusingRollout : private RefusalList {
 public:
  explicit RefusingRollout(const RolloutOrder& order) : order_(order) {}

  std::vector<Refusal> all() {
    check_policy();
    check_nodes();
    refuse_closed(order_.first_gates(), order_.snapshot);
    if (order_.facts) {
      check_changes();
      check_common_names();
      check_window();
    }
    return take();
  }

 private:
  void check_policy() {
    const auto& own = order_.wanted;
    refuse_policy(CertificatesPolicy::operation(), order_.policy);
    if (own.new_authority && (own.sign_command.empty() || !own.authority.empty())) {
      refuse("policy-invalid", "",
             "new_authority is for a signing command whose authority is not known before it signs",
             own.sign_command.empty() ? "name the command (--sign-command), or leave it out"
                                      : "leave out --new-authority, or --authority");
    }
    switch (own.source) {
      case CertificateSource::kCsr:
        if (own.authority.empty() && own.sign_command.empty()) {
          refuse("source-incomplete", "",
                 "the source is csr, and nothing is given that signs the requests",
                 "name an authority or a signing command of vergerd (--authority, "
                 "--sign-command)");
        }
        break;
      case CertificateSource::kFiles:
        if (own.set.empty()) {
          refuse("source-incomplete", "", "the source is files, and no set is given",
                 "bring the files with: verger cert rollout CLUSTER --from DIRECTORY");
        }
        break;
      case CertificateSource::kPath:
        if (own.certificate_path.empty()) {
          refuse("source-incomplete", "", "the source is path, and no path of the certificate",
                 "say where it is on the nodes (--path-certificate)");
        }
        break;
    }
    if (own.days < 1 || own.window_ms <= 0 || own.watch_ms < 0 || own.obtain_deadline_ms <= 0 ||
        order_.policy.limits.undo_deadline_ms <= 0 || order_.policy.limits.election_settle_ms < 0 ||
        order_.policy.gates.lag_limit_bytes < 0 || order_.policy.gates.clock_skew_limit_ms < 0) {
      refuse("policy-invalid", "", "a limit is negative, or a deadline is not above 0",
             "correct the policy");
    }
  }

  void check_nodes() {
    if (order_.snapshot.nodes.empty()) {
      refuse("no-nodes", "", "the cluster has no nodes", "register it with its nodes");
    }
    for (const auto& node : order_.snapshot.nodes) {
      if (!node.url.starts_with("https")) {
        refuse("no-tls", node.name, fmt::format("it is registered as {}, without TLS", node.url),
               "certificates are for nodes that are reached by https");
      }
      if (!node.has_agent()) {
        refuse("no-agent", node.name,
               "it has no agent that could change its files: status, lint and proof work without "
               "one, the rollout does not",
               "install verger-agent on that machine, and register its address");
      }
    }
  }

  void check_changes() {
    bool any = false;
    for (const auto* node : order_.nodes) {
      const auto* own = order_.facts->find(node->name);
      if (own == nullptr) {
        refuse("not-looked-at", node->name, "nothing is known of its certificates",
               "make the plan again once it answers");
        any = true;
        continue;
      }
      any = any || own->leaf_changes || own->roots_change;
      if (!own->change_problem.empty() && node->has_agent()) {
        refuse("agent-cannot-change", node->name, own->change_problem,
               "correct the agent's options or the rights of the files; docs/operations/agents.md "
               "has them");
      }
    }
    if (!any && !order_.nodes.empty()) {
      refuse("nothing-to-change", "", "every node has and shows these certificates already",
             "give others, or leave it as it is");
    }
  }

  /// Of certificates that are there the preflight has looked at the names.
  void check_common_names() {
    if (order_.wanted.source != CertificateSource::kCsr) {
      return;
    }
    for (const auto* node : order_.nodes) {
      const auto* own = order_.facts->find(node->name);
      const auto version = version_number(node->version);
      if (own != nullptr && own->next_common_name != own->common_name &&
          !own->common_name.empty() && (!version || *version < kChangesCommonName)) {
        refuse("common-name-changed", node->name,
               fmt::format("its common name is \"{}\" and would be \"{}\"; servers before 23.10 "
                           "refuse that, and it is {}",
                           own->common_name, own->next_common_name,
                           node->version.empty() ? "of unknown version" : node->version),
               "leave the common name as it is, or upgrade the servers first");
      }
    }
  }

  void check_window() {
    const auto needed = order_.needed_window_ms();
    if (order_.wanted.window_ms > 0 && needed > order_.wanted.window_ms &&
        !order_.switched.empty()) {
      refuse("window-too-short", "",
             fmt::format("{} nodes may take {} s from the first switch until all is proven, or "
                         "restored if one of them cannot follow; the window is {} s",
                         order_.switched.size(), (needed + 999) / 1'000,
                         order_.wanted.window_ms / 1'000),
             "give it a longer window, up to the 10 minutes after which connections are made "
             "anew");
    }
  }

  const RolloutOrder& order_;
};

}  // namespace

std::vector<Refusal> certificate_refusals(const RolloutOrder& order) {
  return RefusingRollout(order).all();
}

}  // namespace verger::planner::detail
