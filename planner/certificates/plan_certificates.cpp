#include "planner/certificates/plan_certificates.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/certificates/certificate_refusals.h"
#include "planner/certificates/certificate_steps.h"
#include "planner/certificates/rollout_order.h"
#include "planner/detail/hours_note.h"
#include "planner/detail/preflight_facts.h"
#include "planner/detail/stages.h"
#include "planner/detail/text.h"

namespace verger::planner::detail {
namespace {

namespace step_names = certificate_steps;

/// For the gates before the first step; the hours do not count.
constexpr std::int64_t kGatesMs = 3'600'000;

Json::Array list_of(const std::vector<std::string>& texts) {
  Json::Array out;
  for (const auto& each : texts) {
    out.emplace_back(each);
  }
  return out;
}

Json source_of(const CertificatesPolicy& wanted) {
  Json::Object out{{"kind", to_string(wanted.source)}};
  if (wanted.source == CertificateSource::kFiles) {
    out["set"] = wanted.set;
  } else if (wanted.source == CertificateSource::kPath) {
    out["certificate"] = wanted.certificate_path;
    out["key"] = wanted.key_path;
    out["roots"] = wanted.roots_path;
  }
  return out;
}

/// The stages of a rollout that nothing stands against.
class Rollout {
 public:
  explicit Rollout(const RolloutOrder& order) : order_(order) {}

  Plan build() {
    plan_.cluster = order_.snapshot.cluster;
    plan_.policy = order_.policy;
    if (order_.wanted.source == CertificateSource::kCsr) {
      plan_.stages.push_back(obtain_stage());
    }
    plan_.stages.push_back(rollout_stage());
    for (const auto* node : order_.nodes) {
      plan_.forecast.push_back({.node = node->name, .row = forecast(facts(*node))});
    }
    add_notes();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] const CertificateNodeFacts& facts(const NodeSnapshot& node) const {
    return *order_.facts->find(node.name);  // certificate_refusals() has seen to it
  }

  Step step_on_cluster(std::string_view id, std::string_view kind) const {
    Step step;
    step.id = std::string(id);
    step.kind = std::string(kind);
    step.gates = {{"cluster-identity", 0}};
    step.expected = order_.expected(kind, "");
    return step;
  }
  Step step_on_node(std::string_view prefix, std::string_view kind,
                    const NodeSnapshot& node) const {
    Step step;
    step.id = joined(prefix, "-", node.name);
    step.kind = std::string(kind);
    step.node = node.name;
    step.gates = order_.later_gates();
    step.expected = order_.expected(kind, node.name);
    step.cost = StepCost{false, order_.margin(node)};
    return step;
  }

  /// Of all nodes, as far as they are known.
  [[nodiscard]] Json::Object serials(std::string CertificateNodeFacts::* which) const {
    Json::Object out;
    for (const auto* node : order_.nodes) {
      if (const auto& serial = facts(*node).*which; !serial.empty()) {
        out[node->name] = serial;
      }
    }
    return out;
  }

  Stage obtain_stage() const {
    const auto& wanted = order_.wanted;
    Json::Object nodes;
    for (const auto* node : order_.nodes) {
      const auto& own = facts(*node);
      nodes[node->name] = Json::Object{{"commonName", own.next_common_name},
                                       {"dnsNames", list_of(own.dns_names)},
                                       {"ipAddresses", list_of(own.ip_addresses)}};
    }
    auto step = step_on_cluster("obtain-certificates", step_names::kObtain);
    if (!wanted.authority.empty()) {
      add_parameter(step, "authority", wanted.authority);
    }
    add_parameter(step, "days", wanted.days);
    add_parameter(step, "keyType", to_string(wanted.key_type));
    add_parameter(step, "nodes", std::move(nodes));
    if (!wanted.sign_command.empty()) {
      add_parameter(step, "signCommand", wanted.sign_command);
    }
    step.gates = order_.first_gates();
    step.act = wanted.sign_command.empty()
                   ? joined("make a key on each node, and sign the requests with the authority ",
                            wanted.authority)
                   : joined("make a key on each node, and have the requests signed by ",
                            wanted.sign_command);
    step.observe = "each node's agent has the signed certificates; the keys stay where they are";
    step.reason = "the present certificates end";
    step.attempts = 2;

    Stage stage;
    stage.id = "prepare";
    stage.title = "obtain new certificates";
    stage.on_failure = FailureRule::kUndoAll;
    stage.deadline_ms = wanted.obtain_deadline_ms;
    stage.undo_deadline_ms = order_.policy.limits.undo_deadline_ms;
    stage.groups.push_back(alone(std::move(step)));
    return stage;
  }

  Stage rollout_stage() const {
    const auto& wanted = order_.wanted;
    Stage stage;
    stage.id = "rollout";
    stage.title = "change the certificates of all nodes, or of none";
    stage.on_failure = FailureRule::kUndoAll;
    stage.atomic = true;
    const std::int64_t windows = 1 + (order_.trust_first() ? 1 : 0) + (order_.drop_roots() ? 1 : 0);
    stage.deadline_ms = kGatesMs + windows * wanted.window_ms + 2 * wanted.watch_ms;
    stage.undo_deadline_ms = order_.policy.limits.undo_deadline_ms;
    stage.groups.push_back(alone(check_step()));
    stage.groups.push_back(
        on_all_nodes([this](const NodeSnapshot& node) { return stage_step(node); }));
    if (order_.trust_first()) {
      add_phase_on_all(stage, step_names::kTrustPhase);
    }
    for (const auto* node : order_.switched) {
      stage.groups.push_back(alone(switch_step(*node, step_names::kLeafPhase)));
    }
    if (!order_.switched.empty()) {
      stage.groups.push_back(alone(prove_step(step_names::kLeafPhase)));
    }
    if (wanted.watch_ms > 0) {
      stage.groups.push_back(alone(watch_step()));
    }
    if (order_.drop_roots()) {
      add_phase_on_all(stage, step_names::kDropPhase);
    }
    return stage;
  }

  template <class MakeStep>
  Group on_all_nodes(MakeStep make_step) const {
    Group group;
    group.reserve(order_.nodes.size());
    for (const auto* node : order_.nodes) {
      group.push_back(make_step(*node));
    }
    return group;
  }
  void add_phase_on_all(Stage& stage, std::string_view phase) const {
    stage.groups.push_back(
        on_all_nodes([this, phase](const NodeSnapshot& node) { return switch_step(node, phase); }));
    stage.groups.push_back(alone(prove_step(phase)));
  }

  bool names_change() const {
    return std::ranges::any_of(order_.nodes, [this](const auto* node) {
      return facts(*node).common_name != facts(*node).next_common_name;
    });
  }

  Step check_step() const {
    auto step = step_on_cluster("check-certificates", step_names::kCheck);
    add_parameter(step, "commonNameChanges", names_change());
    add_parameter(step, "dropsOldRoots", order_.drop_roots());
    add_parameter(step, "serials", serials(&CertificateNodeFacts::next_serial));
    add_parameter(step, "source", source_of(order_.wanted));
    add_parameter(step, "trustFirst", order_.trust_first());
    add_parameter(step, "windowMs", order_.wanted.window_ms);
    step.gates = order_.first_gates();
    step.act = "check the new certificates against what each node shows and trusts now";
    step.observe = "there is no finding that is an error";
    step.undo = "new connections to and between all nodes show what there was before";
    step.reason = "nothing is touched with certificates that do not fit";
    step.attempts = 3;
    return step;
  }

  Step stage_step(const NodeSnapshot& node) const {
    auto step = step_on_node("stage", step_names::kStage, node);
    if (const auto& serial = facts(node).next_serial; !serial.empty()) {
      add_parameter(step, "serial", serial);
    }
    add_parameter(step, "source", source_of(order_.wanted));
    step.act = joined("write the new files beside the live ones of ", node.name);
    step.observe = "its agent has both, and copies of the live ones";
    step.undo = "the new files are discarded";
    step.reason = "from here on no node needs anything but itself to change";
    step.attempts = 3;
    return step;
  }

  Step switch_step(const NodeSnapshot& node, std::string_view phase) const {
    const auto& own = facts(node);
    const bool leaf = phase == step_names::kLeafPhase;
    auto step = step_on_node(leaf ? "switch" : phase, step_names::kSwitch, node);
    if (leaf) {
      add_parameter(step, "beginWithinMs", order_.begin_within_ms(node));
    }
    if (leaf && order_.switched.front() != &node && names_change()) {
      // Old and new nodes may call each other dead by now, and do so until all have changed.
      step.gates = {{"cluster-identity", 0}, {"agents-answer", 0}};
    }
    add_parameter(step, "phase", phase);
    add_parameter(step, "reload", to_string(order_.wanted.reload));
    if (leaf && !own.next_serial.empty()) {
      add_parameter(step, "serial", own.next_serial);
    }
    if (leaf) {
      add_parameter(step, "windowMs", order_.wanted.window_ms);
    }
    const std::string_view by = order_.wanted.reload == CertificateReload::kRoute
                                    ? ", and have it read them again"
                                    : ", and send it SIGHUP";
    if (leaf) {
      step.act = joined("put the new certificate of ", node.name, " in place", by);
      step.observe = "a new handshake shows the new certificate";
      step.reason = order_.switched.back() == &node && order_.snapshot.leader() == &node
                        ? "the leader comes last"
                        : "one node after the other";
    } else if (phase == step_names::kTrustPhase) {
      step.act = joined("let ", node.name, " trust the new roots besides the old ones", by);
      step.observe = "it accepts a certificate of a new root in a new handshake";
      step.reason = "nodes with old and new certificates have to accept each other";
    } else {
      step.act = joined("let ", node.name, " trust the new roots alone", by);
      step.observe = "it accepts the new certificates in new handshakes";
      step.reason = "no node shows a certificate of an old root any longer";
    }
    step.undo = "exactly the files that were there before, read again, and proven";
    step.attempts = 2;
    return step;
  }

  Step prove_step(std::string_view phase) const {
    auto step = step_on_cluster(joined("prove-", phase), step_names::kProve);
    add_parameter(step, "phase", phase);
    add_parameter(step, "serials",
                  serials(phase == step_names::kTrustPhase ? &CertificateNodeFacts::serial
                                                           : &CertificateNodeFacts::next_serial));
    if (phase == step_names::kLeafPhase) {
      add_parameter(step, "windowMs", order_.wanted.window_ms);
    }
    step.act = "open new connections to every node, and between all of them, in both directions";
    step.observe =
        "each shows the expected certificate and accepts all others as client and server";
    step.reason = "connections that are open already prove nothing";
    step.attempts = 3;
    return step;
  }

  Step watch_step() const {
    auto step = step_on_cluster("watch-cluster", step_names::kWatch);
    add_parameter(step, "watchMs", order_.wanted.watch_ms);
    step.act = "watch gossip, the leader and replication";
    step.observe = "all nodes stayed, with one leader, and kept up";
    step.reason = "every connection between nodes is made anew within 10 minutes";
    step.expected = {order_.wanted.watch_ms, order_.wanted.watch_ms + 30'000};
    return step;
  }

  static std::string forecast(const CertificateNodeFacts& own) {
    const auto until = [](const std::string& time) {
      return time.empty() ? std::string() : joined(" (until ", time, ")");
    };
    if (!own.leaf_changes) {
      return joined("keeps its certificate ", own.serial, until(own.not_after));
    }
    return joined(own.serial.empty() ? "unknown" : own.serial, until(own.not_after), " -> ",
                  own.next_serial.empty() ? "made in the run" : own.next_serial,
                  until(own.next_not_after));
  }

  void add_notes() {
    const auto& wanted = order_.wanted;
    if (wanted.new_authority) {
      plan_.notes.push_back(joined("all nodes will trust the root that the signing command ",
                                   wanted.sign_command,
                                   " answers with, whichever it is, as the policy says; the run's "
                                   "report names it"));
    }
    if (!order_.switched.empty()) {
      plan_.notes.push_back(fmt::format(
          "from the first new certificate on, all nodes change within {} s, or every one gets back "
          "exactly what it had; a pause or the end of the hours takes effect before or after that",
          wanted.window_ms / 1'000));
    }
    if (order_.trust_first()) {
      plan_.notes.push_back(
          "new roots: all nodes trust old and new ones before the first node "
          "shows a certificate of them");
    }
    if (order_.facts->old_roots_go && !wanted.drop_old_roots) {
      plan_.notes.push_back("the old roots stay trusted, as the policy says");
    }
    std::vector<std::string_view> renamed;
    for (const auto* node : order_.nodes) {
      if (facts(*node).common_name != facts(*node).next_common_name) {
        renamed.push_back(node->name);
      }
    }
    if (!renamed.empty()) {
      plan_.notes.push_back(fmt::format(
          "the common name of {} becomes \"{}\": until all nodes have changed, those "
          "with the old and those with the new name may refuse each other's new "
          "connections",
          fmt::join(renamed, ", "), order_.facts->find(renamed.front())->next_common_name));
    }
    if (wanted.watch_ms == 0) {
      plan_.notes.push_back(
          "the cluster is not watched after the switch, as the policy says: a "
          "node that its peers do not accept is lost up to 10 minutes later");
    }
    add_hours_note(order_.snapshot, plan_.notes);
  }

  const RolloutOrder& order_;
  Plan plan_;
};

}  // namespace

std::expected<Plan, std::vector<Refusal>> plan_certificates(const ClusterSnapshot& snapshot,
                                                            const Policy& policy,
                                                            const History& history) {
  std::vector<Refusal> refusals;
  auto found = facts_of_preflight(snapshot, parse_certificate_facts, refusals);
  if (was_not_looked_at(snapshot)) {
    refusals.push_back({"not-looked-at", "", "the nodes' certificates were not looked at",
                        "make the plan with vergerd, which looks at them first"});
  }
  const RolloutOrder order(snapshot, policy, history, std::move(found));
  auto others = certificate_refusals(order);
  refusals.insert(refusals.end(), std::make_move_iterator(others.begin()),
                  std::make_move_iterator(others.end()));
  if (!refusals.empty() || !order.facts) {
    return std::unexpected(std::move(refusals));
  }
  return Rollout(order).build();
}

std::int64_t time_at_certificates_ms(const Policy& policy,
                                     std::span<const PastDuration> durations) {
  std::int64_t out = 0;
  bool watched = false;
  for (const auto& past : durations) {
    if (past.kind.starts_with("certificate_")) {
      out += past.duration_ms;
      watched = watched || past.kind == step_names::kWatch;
    }
  }
  return watched || out == 0 ? out : out + certificates_of(policy).watch_ms;
}

}  // namespace verger::planner::detail
