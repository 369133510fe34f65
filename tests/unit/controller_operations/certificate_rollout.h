#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/operations/certificates/certificates_module.h"
#include "controller/operations/certificates/signer.h"
#include "nodeagent/certificates/detail/builder.h"
#include "nodeagent/certificates/key.h"
#include "planner/certificates/certificates_policy.h"
#include "tests/support/controller/controller_harness.h"

namespace verger::test {

/// Signs with an authority in memory, or as a test says.
class FakeSigner final : public controller::CertificateSigner {
 public:
  [[nodiscard]] Result<std::string> issuer(const controller::SignerName& by) const override {
    return by.authority.empty() ? std::string() : authority.certificate;
  }
  boost::asio::awaitable<Result<std::string>> sign(controller::SigningOrder order) override {
    if (answer) {
      co_return answer(order);
    }
    co_return authority.issue(order.request, order.terms) + authority.certificate;
  }
  FakeAuthority authority;
  std::function<Result<std::string>(const controller::SigningOrder&)> answer;
};

/// A leaf of a node with these usages and no others, signed by the cluster's authority.
inline std::string leaf_with_usages(const FakeCertificateCluster& cluster, int node,
                                    const certificates::Key& key, const char* usages,
                                    const char* extended) {
  using namespace certificates;
  const auto& by = cluster.authority;
  const auto terms = cluster.terms_of(node);
  const auto issuer = read_certificate(by.certificate);
  auto made = begin_certificate(key.get(), terms.not_before, terms.not_after);
  X509* out = made->get();
  static_cast<void>(set_common_name(X509_get_subject_name(out), terms.common_name));
  X509_set_issuer_name(out, X509_get_subject_name(issuer->get()));
  static_cast<void>(add_extension(out, issuer->get(), NID_key_usage, usages));
  static_cast<void>(add_extension(out, issuer->get(), NID_ext_key_usage, extended));
  const AlternativeNames names(GENERAL_NAMES_new());
  static_cast<void>(add_host(names.get(), "10.0.0." + std::to_string(node)));
  static_cast<void>(add_alternative_names(out, names.get()));
  X509_sign(out, read_key(by.key)->get(), EVP_sha256());
  return *to_pem(out);
}

/// Three TLS nodes with agents, and files at "/new/node.crt" on each of them.
class CertificateRollout : public ::testing::Test {
 protected:
  using Files = FakeCertificateFiles;

  CertificateRollout() {
    h_.scheme = "https";
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.cluster.certificates = std::make_unique<FakeCertificateCluster>(h_.time, 3);
    h_.cluster.certificates->is_up = [this](const std::string& name) {
      return h_.cluster.node(name).up;
    };
    signer_ = std::make_shared<FakeSigner>();
    signer_->authority = certificates().authority;
    h_.operations.signer = signer_;
    before_ = certificates().all();
  }
  void begin() {
    h_.boot();
    h_.register_cluster();
  }
  FakeCertificateCluster& certificates() { return *h_.cluster.certificates; }
  FakeNode& node(const std::string& name) { return h_.cluster.node(name); }

  static planner::Policy policy_of(planner::CertificatesPolicy wanted = {}) {
    auto out = ControllerHarness::quick_policy();
    if (wanted.authority.empty() && wanted.sign_command.empty()) {
      wanted.source = planner::CertificateSource::kPath;
      wanted.certificate_path = "/new/node.crt";
    }
    out.operation = wanted;
    return out;
  }
  static planner::Policy csr_policy() {
    planner::CertificatesPolicy wanted;
    wanted.authority = "corp";
    wanted.key_type = planner::CertificateKey::kEcP256;
    return policy_of(wanted);
  }
  void offer(const FakeAuthority& by,
             const std::function<void(certificates::CertificateTerms&)>& change = {}) {
    for (int i = 1; i <= 3; ++i) {
      certificates().offer(fmt_name(i), certificates().leaf_of(by, i, 365, change));
    }
  }
  static std::string fmt_name(int i) { return "n" + std::to_string(i); }

  std::string start(const planner::Policy& policy = policy_of()) {
    return h_.start_scavenge(policy);
  }
  /// "code node" of each reason why there is no plan.
  std::vector<std::string> refusals(const planner::Policy& policy = policy_of()) {
    auto made = h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
    std::vector<std::string> out;
    if (made && !*made) {
      for (const auto& each : made->error().refusals) {
        out.push_back(each.node.empty() ? each.code : each.code + " " + each.node);
      }
    }
    return out;
  }
  nlohmann::json report(const std::string& run) {
    return controller::certificate_change::report(h_.state(run), nlohmann::json::object());
  }
  void expect_untouched() {
    EXPECT_EQ(certificates().all(), before_) << "files, and what the processes have read of them";
  }
  void expect_changed(const std::string& run) {
    ASSERT_TRUE(h_.run_to_end(run, std::chrono::hours(3)))
        << controller::snapshot_of(h_.state(run)).state;
    ASSERT_EQ(h_.state(run).status, controller::RunStatus::kDone) << h_.state(run).reason;
    const auto shown = report(run);
    EXPECT_EQ(shown["outcome"], "changed");
    for (const auto& [name, node] : certificates().nodes) {
      EXPECT_NE(node.disk.chain, before_.at(name).first.chain) << name;
      EXPECT_EQ(node.disk, node.loaded) << name;
    }
  }
  /// All or nothing, and proven.
  void expect_undone(const std::string& run) {
    ASSERT_TRUE(h_.run_to_end(run, std::chrono::hours(3)))
        << controller::snapshot_of(h_.state(run)).state;
    EXPECT_EQ(h_.state(run).status, controller::RunStatus::kFailed);
    expect_untouched();
    EXPECT_EQ(report(run)["outcome"], "undone") << h_.state(run).reason << report(run);
  }
  std::map<std::string, int> switches() {
    std::map<std::string, int> out;
    for (const auto& [name, node] : certificates().nodes) {
      out[name] = node.switches;
    }
    return out;
  }
  /// The nth operation of a kind has arrived at an agent.
  void when(const std::string& kind, const std::string& node_name, std::function<void()> then) {
    h_.cluster.acted = [this, kind, node_name, then = std::move(then)](
                           const FakeNode& to, const http::Request& request) {
      if (to.name == node_name && request.target == "/agent/v1/operations" &&
          nlohmann::json::parse(request.body).at("kind") == kind && !struck_) {
        struck_ = true;
        then();
      }
    };
  }

  ControllerHarness h_;
  std::shared_ptr<FakeSigner> signer_;
  std::map<std::string, std::pair<Files, Files>> before_;
  bool struck_ = false;
};

}  // namespace verger::test
