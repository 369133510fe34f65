#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/certificates/change_check.h"
#include "controller/operations/certificates/change_support.h"
#include "controller/operations/certificates/sources.h"
#include "controller/operations/certificates/step_kinds.h"
#include "nodeagent/certificates/signed_answer.h"

namespace verger::controller::certificate_change {
namespace {

using nlohmann::json;
using steps::done;
using steps::running;
using steps::text_parameter;
using steps::verdict;

/// A node's request is signed in one look, and noted: {"nodes": {NAME: {"certificate" (SHA-256),
/// "serial", "not_after", "roots" (PEM)}}}. A look that a crash cuts off signs once more. The keys
/// stay with the agents.
class ObtainStep final : public StepKind {
 public:
  explicit ObtainStep(std::shared_ptr<const OperationSettings> settings)
      : settings_(std::move(settings)) {}
  [[nodiscard]] std::string_view name() const override { return names::kObtain; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    auto* signer = settings_->signer.get();
    if (signer == nullptr) {
      co_return steps::impossible("this vergerd has no authorities and no signing commands");
    }
    if (const auto issuer = signer->issuer(signer_of(context)); !issuer) {
      co_return steps::impossible(issuer.error().message);
    }
    co_return steps::ready(*context.state.memo);
  }

  net::awaitable<ActAnswer> act(StepContext) override {
    co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    if (context.state.interrupting) {
      co_return verdict(Verdict::Kind::kStopped, "stopped-by-us", "stopped on request");
    }
    const auto wanted = object_parameter(context.step, "nodes");
    auto nodes = context.state.memo->value("nodes", json::object());
    for (const auto& [name, of_node] : wanted) {
      const auto* node = of_node.as_object();
      if (node != nullptr && !nodes.contains(name)) {
        co_return co_await obtain(settings_, context, name, *node, std::move(nodes));
      }
    }
    co_return co_await make_set(context, std::move(nodes));
  }

  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt) const override { return true; }

 private:
  static SignerName signer_of(const StepContext& context) {
    return {.authority = text_parameter(context.step, "authority"),
            .command = text_parameter(context.step, "signCommand")};
  }

  static Verdict cannot(Verdict::Kind kind, const std::string& node, const Error& error) {
    return verdict(kind, fmt::format("{}: {}", node, error.message));
  }

  static net::awaitable<Verdict> obtain(std::shared_ptr<const OperationSettings> settings,
                                        StepContext context, std::string name,
                                        planner::Json::Object wanted, json nodes) {
    certificates::CertificateTerms terms{.common_name = text_member(wanted, "commonName"),
                                         .dns_names = texts_member(wanted, "dnsNames"),
                                         .ip_addresses = texts_member(wanted, "ipAddresses")};
    set_dates(context.now, steps::int_parameter(context.step, "days", 365), terms);
    const auto peers = context.peers;
    const auto request = co_await peers->certificate_request(
        name, {.change = context.run,
               .common_name = terms.common_name,
               .dns_names = terms.dns_names,
               .ip_addresses = terms.ip_addresses,
               .key_type = text_parameter(context.step, "keyType")});
    if (!request) {
      co_return cannot(request.error().code == Errc::kUnavailable ||
                               request.error().code == Errc::kUnknownOutcome
                           ? Verdict::Kind::kUnknown
                           : Verdict::Kind::kNotHappened,
                       name, request.error());
    }
    const auto answer = co_await settings->signer->sign({.by = signer_of(context),
                                                         .cluster = context.cluster.name,
                                                         .node = name,
                                                         .request = *request,
                                                         .terms = terms});
    if (!answer) {
      co_return cannot(Verdict::Kind::kNotHappened, name, answer.error());
    }
    const auto taken = certificates::take_answer(*request, terms, *answer);
    if (!taken) {
      co_return verdict(Verdict::Kind::kFailed,
                        fmt::format("the answer to the request of {} is not what was requested: {}",
                                    name, taken.error().message));
    }
    const auto stored = co_await peers->put_file(name, taken->chain, context.epoch.value());
    if (!stored) {
      co_return cannot(Verdict::Kind::kUnknown, name, stored.error());
    }
    nodes[name] = {{"certificate", stored->sha256},
                   {"serial", taken->leaf.serial},
                   {"not_after", taken->leaf.not_after},
                   {"roots", taken->roots}};
    auto out = running({{"phase", fmt::format("signed for {}", name)},
                        {"done", nodes.size()},
                        {"total", object_parameter(context.step, "nodes").size()},
                        {"unit", "nodes"}});
    out.memo = json{{"nodes", std::move(nodes)}};
    co_return out;
  }

  /// Which roots a node is to trust depends on what all of them trust and show.
  static net::awaitable<Verdict> make_set(StepContext context, json nodes) {
    const auto peers = context.peers;
    const auto seen = co_await look_at_nodes(peers, {});
    const auto issuers = issuers_now(seen);
    auto signed_by = signer_of(context);
    const auto name_of_roots =
        signed_by.authority.empty() ? signed_by.command : signed_by.authority;
    api::CertificateSet set;
    auto result = json::object();
    for (const auto& node : seen) {
      if (!nodes.contains(node.name)) {
        continue;
      }
      if (!node.live) {
        co_return cannot(Verdict::Kind::kUnknown, node.name,
                         Error{Errc::kUnavailable, node.live_problem});
      }
      const auto& own = nodes[node.name];
      auto& entry = set.nodes[node.name];
      entry.certificate = own.value("certificate", std::string());
      entry.key_request = context.run;
      const auto roots =
          next_roots(node, issuers, own.value("roots", std::string()), name_of_roots);
      for (const auto& root : roots) {
        const auto stored = co_await peers->put_file(node.name, root.pem, context.epoch.value());
        if (!stored) {
          co_return cannot(Verdict::Kind::kUnknown, node.name, stored.error());
        }
        entry.roots.push_back({.name = root.name, .sha256 = stored->sha256});
      }
      result[node.name] = {{"serial", own.value("serial", std::string())},
                           {"not_after", own.value("not_after", std::string())}};
    }
    std::string sha256;
    const auto text = api::to_text(set);
    for (const auto& [name, node] : set.nodes) {
      const auto stored = co_await peers->put_file(name, text, context.epoch.value());
      if (!stored) {
        co_return cannot(Verdict::Kind::kUnknown, name, stored.error());
      }
      sha256 = stored->sha256;
    }
    auto out = done({{"set", sha256}, {"nodes", std::move(result)}});
    out.values[std::string(names::kSetValue)] = json{{"sha256", sha256}}.dump();
    co_return out;
  }

  std::shared_ptr<const OperationSettings> settings_;
};

}  // namespace

std::unique_ptr<StepKind> make_obtain_step(std::shared_ptr<const OperationSettings> settings) {
  return std::make_unique<ObtainStep>(std::move(settings));
}

}  // namespace verger::controller::certificate_change
