#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodeagent/operations/certificates/change_plan.h"
#include "tests/unit/nodeagent_operations/certificate_case.h"

/// Which files a change replaces in which phase.
namespace verger::agent {
namespace {

using api::CertificatePhase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ChainPlan : public ::testing::Test {
 protected:
  static FoundFile file(const std::string& path, const std::string& content) {
    return {.path = path, .target = path, .content = content};
  }
  static FoundCertificates found(const TestAuthority::Leaf& leaf, const std::string& behind,
                                 const std::string& directory = "/node/") {
    return {.certificate = file(directory + "node.crt", leaf.certificate + behind),
            .key = file(directory + "node.key", leaf.key)};
  }
  static FoundCertificates new_files(const TestAuthority::Leaf& leaf, const std::string& behind) {
    return found(leaf, behind, "/new/");
  }
  /// Those of the certificate's file, in order.
  static std::vector<PlannedFile> chain_of(const FoundCertificates& live,
                                           const FoundCertificates& next) {
    auto planned = plan_files(live, next);
    EXPECT_TRUE(planned.has_value()) << planned.error().message;
    std::vector<PlannedFile> out;
    for (auto& each : *planned) {
      if (each.change.path == "/node/node.crt") {
        out.push_back(std::move(each));
      }
    }
    return out;
  }
  static std::vector<CertificatePhase> phases(const std::vector<PlannedFile>& of) {
    std::vector<CertificatePhase> out;
    for (const auto& each : of) {
      out.push_back(each.change.phase);
    }
    return out;
  }
  TestAuthority ca_{"Root"};
  TestAuthority old_between_{"Old intermediate"};
  TestAuthority new_between_{"New intermediate"};
  TestAuthority::Leaf old_leaf_ = ca_.leaf();
  TestAuthority::Leaf new_leaf_ = ca_.leaf();
};

TEST_F(ChainPlan, ANewLeafOfTheSameIntermediateIsOneChange) {
  const auto live = found(old_leaf_, old_between_.root());
  const auto next = new_files(new_leaf_, old_between_.root());
  const auto chain = chain_of(live, next);
  ASSERT_THAT(phases(chain), ElementsAre(CertificatePhase::kLeaf));
  EXPECT_EQ(chain[0].content_after, next.certificate.content);
  EXPECT_THAT(chain_of(live, new_files(old_leaf_, old_between_.root())), IsEmpty());
}

TEST_F(ChainPlan, ANewIntermediateComesFirstAndTheOldOneGoesLast) {
  const auto live = found(old_leaf_, old_between_.root());
  const auto next = new_files(new_leaf_, new_between_.root());
  const auto chain = chain_of(live, next);
  ASSERT_THAT(phases(chain), ElementsAre(CertificatePhase::kTrust, CertificatePhase::kLeaf,
                                         CertificatePhase::kDrop));
  EXPECT_EQ(chain[0].content_before, live.certificate.content);
  EXPECT_EQ(chain[0].content_after, live.certificate.content + new_between_.root());
  EXPECT_EQ(chain[1].content_after, next.certificate.content + old_between_.root());
  EXPECT_EQ(chain[2].content_after, next.certificate.content);
  for (std::size_t i = 1; i < chain.size(); ++i) {
    EXPECT_EQ(chain[i].change.before, chain[i - 1].change.after) << "each begins where one ends";
  }
}

TEST_F(ChainPlan, TheFirstIntermediateComesBehindTheLeafThatHasNone) {
  const auto live = found(old_leaf_, "");
  const auto next = new_files(new_leaf_, new_between_.root());
  const auto chain = chain_of(live, next);
  ASSERT_THAT(phases(chain), ElementsAre(CertificatePhase::kTrust, CertificatePhase::kLeaf));
  EXPECT_EQ(chain[0].content_after, live.certificate.content + new_between_.root());
  EXPECT_EQ(chain[1].content_after, next.certificate.content);
}

}  // namespace
}  // namespace verger::agent
