#include "nodeagent/certificates/signed_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/clock.h"
#include "nodeagent/certificates/key.h"

namespace verger::certificates {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kYear = 365LL * 86'400 * kTicksPerSecond;

class SignedAnswerTest : public ::testing::Test {
 protected:
  static std::string key_text() { return *private_key_text(new_key(KeyType::kEcP256)->get(), ""); }
  CertificateTerms terms(CertificateKind kind, const std::string& name) const {
    return {.kind = kind,
            .common_name = name,
            .not_before = now_,
            .not_after = Ticks(now_.value() + kYear)};
  }
  void SetUp() override {
    const auto root_key = key_text();
    root_ = make_root(root_key, "", terms(CertificateKind::kRoot, "Root"))->certificates;
    const auto middle = terms(CertificateKind::kIntermediate, "Middle");
    middle_key_ = key_text();
    middle_ = issue(*make_request(middle_key_, "", middle), middle,
                    {.certificates = root_, .key = root_key})
                  ->certificates;
    wanted_ = terms(CertificateKind::kNode, "node");
    wanted_.dns_names = {"n1.example.com"};
    wanted_.ip_addresses = {"10.0.0.1"};
    request_ = *make_request(key_text(), "", wanted_);
  }
  std::string signed_for(const std::string& request, const CertificateTerms& as) const {
    // Without the intermediate, which each test adds where it wants it.
    auto made = issue(request, as, {.certificates = middle_, .key = middle_key_});
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return made->certificates.substr(0, made->certificates.size() - middle_.size());
  }
  std::string error_for(const std::string& answer) const {
    const auto taken = take_answer(request_, wanted_, answer);
    return taken ? "no error" : taken.error().message;
  }

  Ticks now_ = *parse_ticks("2026-03-01T12:00:00Z");
  std::string root_;
  std::string middle_;
  std::string middle_key_;
  CertificateTerms wanted_;
  std::string request_;
};

TEST_F(SignedAnswerTest, IsPutInOrderAndLosesItsRoot) {
  const auto leaf = signed_for(request_, wanted_);
  const auto taken = take_answer(request_, wanted_, root_ + middle_ + leaf);
  ASSERT_TRUE(taken.has_value()) << taken.error().message;
  EXPECT_EQ(taken->chain, leaf + middle_);
  EXPECT_EQ(taken->roots, root_);
  EXPECT_EQ(taken->leaf.common_name, "node");
}

TEST_F(SignedAnswerTest, ACertificateForAnotherKeyOrNameIsRefused) {
  const auto other_request = *make_request(key_text(), "", wanted_);
  EXPECT_THAT(error_for(signed_for(other_request, wanted_)),
              HasSubstr("not for the request's key"));
  auto other = wanted_;
  other.common_name = "elsewhere";
  EXPECT_THAT(error_for(signed_for(request_, other)),
              HasSubstr("its common name is \"elsewhere\"; \"node\" was requested"));
  other = wanted_;
  other.ip_addresses = {"10.0.0.2"};
  EXPECT_THAT(error_for(signed_for(request_, other)), HasSubstr("not for 10.0.0.1"));
  EXPECT_THAT(error_for(signed_for(request_, terms(CertificateKind::kRoot, "node"))),
              HasSubstr("authority"));
  EXPECT_THAT(error_for("Usage: sign [OPTION]\n"), HasSubstr("no certificate came back"));
}

}  // namespace
}  // namespace verger::certificates
