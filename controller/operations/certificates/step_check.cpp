#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/other_steps.h"
#include "controller/operations/certificates/change_check.h"
#include "controller/operations/certificates/change_support.h"
#include "controller/operations/certificates/proof.h"
#include "controller/operations/certificates/sources.h"
#include "controller/operations/certificates/step_kinds.h"
#include "nodeagent/certificates/certificate_details.h"

namespace verger::controller::certificate_change {
namespace {

using nlohmann::json;
using steps::bool_parameter;
using steps::done;
using steps::impossible;
using steps::ready;
using steps::verdict;
using steps::wait;

/// Looks only. It has an intent nevertheless: it is what a stage that was undone is proven by, and
/// what is undone is what was intended.
class CheckStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kCheck; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }
  [[nodiscard]] bool can_undo() const override { return true; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto source = object_parameter(context.step, "source");
    std::map<std::string, api::CertificateSource> candidates;
    for (const auto& node : context.cluster.nodes) {
      auto candidate = source_for(source, obtained_set(context), node.name);
      if (!candidate) {
        co_return impossible(candidate.error().message);
      }
      candidates.emplace(node.name, *std::move(candidate));
    }
    const auto nodes = co_await look_at_nodes(context.peers, std::move(candidates));
    for (const auto& node : nodes) {
      const auto& problem = !node.live_problem.empty()   ? node.live_problem
                            : !node.next_problem.empty() ? node.next_problem
                                                         : node.served_problem;
      if (!problem.empty()) {
        co_return wait(fmt::format("{}: {}", node.name, problem));
      }
    }
    const auto answer = check_change({.snapshot = context.snapshot,
                                      .nodes = nodes,
                                      .now = context.now,
                                      .window = std::chrono::milliseconds(steps::int_parameter(
                                          context.step, "windowMs", 600'000))});
    if (auto why = refusal(context, answer); !why.empty()) {
      co_return impossible(std::move(why));
    }
    const auto before = co_await prove_certificates(context.peers, serials_now(nodes));
    if (!before.holds()) {
      co_return wait("before anything is changed: " + before.problems.front());
    }
    auto warnings = json::array();
    for (const auto& each : answer.findings) {
      warnings.push_back(text_of(each));
    }
    for (const auto& each : new_roots(nodes, answer)) {
      warnings.push_back(each);
    }
    const auto checked = to_json(what_changes(nodes, answer));
    auto out = ready({{"nodes", checked}, {"warnings", warnings}});
    out.values[kChecked] =
        json{{"nodes", checked},
             {"drops_old_roots", bool_parameter(context.step, "dropsOldRoots", false)}}
            .dump();
    co_return out;
  }

  net::awaitable<ActAnswer> act(StepContext) override {
    co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const json memo = *context.state.memo;
    co_return done({{"nodes", memo.value("nodes", json::object())},
                    {"warnings", memo.value("warnings", json::array())}});
  }

  net::awaitable<ActAnswer> undo(StepContext) override {
    co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
  }

  net::awaitable<Verdict> observe_undo(StepContext context) override {
    std::map<std::string, std::string> serials;
    for (const auto& [node, checked] : checked_nodes(context.values)) {
      if (is_going_back(context, node)) {
        co_return verdict(Verdict::Kind::kRunning, fmt::format("{} is undone first", node));
      }
      serials[node] = checked.serial_before;
    }
    const auto proof = co_await prove_certificates(context.peers, std::move(serials));
    if (proof.holds()) {
      co_return done(json::object());
    }
    co_return verdict(Verdict::Kind::kRunning, fmt::format("the former state is not proven: {}",
                                                           fmt::join(proof.problems, "; ")));
  }

 private:
  /// The nodes are undone side by side with this step, and what is proven before the last of them
  /// has its former roots again is no proof of where it ends. Staging is what a node undoes last.
  static bool is_going_back(const StepContext& context, const std::string& node) {
    const auto staging = fmt::format("stage-{}", node);
    return steps::stands(context, staging) && !steps::was_given_up(context, staging);
  }

  static std::map<std::string, std::string> serials_now(const std::vector<NodeSeen>& nodes) {
    std::map<std::string, std::string> out;
    for (const auto& node : nodes) {
      if (const auto shown = certificates::read_details(node.served)) {
        out[node.name] = shown->front().info.serial;
      }
    }
    return out;
  }

  static std::map<std::string, CheckedNode> what_changes(const std::vector<NodeSeen>& nodes,
                                                         const ChangeAnswer& answer) {
    std::map<std::string, CheckedNode> out;
    for (const auto& node : nodes) {
      const auto* facts = answer.facts.find(node.name);
      out[node.name] = {.serial = facts->next_serial,
                        .serial_before = facts->serial,
                        .digest = node.next ? node.next->digest : "",
                        .not_after = facts->next_not_after,
                        .not_after_before = facts->not_after};
    }
    return out;
  }

  /// What nodes are to trust that they do not trust now, one line for each root.
  static std::set<std::string> new_roots(const std::vector<NodeSeen>& nodes,
                                         const ChangeAnswer& answer) {
    std::set<std::string> out;
    for (const auto& later : answer.later) {
      const auto node = std::ranges::find(nodes, later.node, &NodeSeen::name);
      for (const auto& root : later.roots) {
        const bool known = std::ranges::any_of(node->live->live.roots, [&root](const auto& each) {
          const auto now = certificates::read_details(each.pem);
          return now && std::ranges::any_of(*now, [&root](const auto& one) {
                   return one.info.fingerprint == root.fingerprint;
                 });
        });
        if (!known) {
          out.insert(fmt::format("new root: {}, SHA-256 {}", root.subject, root.fingerprint));
        }
      }
    }
    return out;
  }

  /// Empty: nothing stands against it.
  static std::string refusal(const StepContext& context, const ChangeAnswer& answer) {
    std::vector<std::string> errors;
    for (const auto& each : answer.findings) {
      if (each.severity == certificates::Severity::kError) {
        errors.push_back(text_of(each));
      }
    }
    if (!errors.empty()) {
      return fmt::format("{}; nothing was touched", fmt::join(errors, "; "));
    }
    if (answer.facts.new_roots && !bool_parameter(context.step, "trustFirst", false)) {
      return "the new certificates come from a root that not every node trusts, which this plan "
             "does not provide for; nothing was touched; make the plan again: for a signing "
             "command with the certificates of its authority (--authority), or, if the root that "
             "it answers with is to be trusted, with --new-authority true";
    }
    planner::Preflight trust;
    check_controller_trust(*context.peers, answer.later, trust);
    if (!trust.refusals.empty()) {
      const auto& first = trust.refusals.front();
      return fmt::format("{}: {}; nothing was touched; {}", first.node, first.message, first.hint);
    }
    const auto planned = object_parameter(context.step, "serials");
    for (const auto& node : answer.facts.nodes) {
      if (const auto serial = text_member(planned, node.name);
          !serial.empty() && serial != node.next_serial) {
        return fmt::format(
            "the new certificate of {} is {}, and this plan is about {}: the files have changed "
            "since; nothing was touched; make the plan again",
            node.name, node.next_serial, serial);
      }
      if (node.common_name != node.next_common_name &&
          !bool_parameter(context.step, "commonNameChanges", false)) {
        return fmt::format(
            "the common name of {} would change from \"{}\" to \"{}\", which this plan does not "
            "provide for; nothing was touched; make the plan again",
            node.name, node.common_name, node.next_common_name);
      }
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<StepKind> make_check_step() { return std::make_unique<CheckStep>(); }

}  // namespace verger::controller::certificate_change
