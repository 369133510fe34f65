#include "engine/base/secret.h"

#include <gtest/gtest.h>

namespace verger {
namespace {

TEST(Secret, ProvesItselfAgainstWhatIsKept) {
  SeededRandom random(1);
  const auto one = make_secret(random);
  const auto other = make_secret(random);
  EXPECT_EQ(one.id.size(), 12U);
  EXPECT_EQ(one.secret.size(), 64U);
  EXPECT_TRUE(one.kept.matches(one.secret));
  EXPECT_FALSE(one.kept.matches(other.secret));
  EXPECT_FALSE(one.kept.matches(one.secret.substr(1)));
  EXPECT_FALSE(one.kept.matches(one.kept.hash));
  EXPECT_NE(one.id, other.id);
  EXPECT_NE(one.kept.salt, other.kept.salt);
}

TEST(Secret, MatchesNothingThatWasNeverKept) { EXPECT_FALSE(SaltedHash{}.matches("")); }

// RFC 4231, case 2.
TEST(Secret, ProvesThatItIsKnown) {
  EXPECT_EQ(hmac_sha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

// Journals hold hashes made so.
TEST(Secret, IsHashedBehindItsSalt) {
  EXPECT_TRUE(
      (SaltedHash{"salt", "bede90386d450cea8b77b822f8887065e4e5abf132c2f9dccfcc7fbd4cba5e35"}
           .matches("secret")));
}

TEST(Secret, ComparesWholeTexts) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
  EXPECT_TRUE(equal_in_constant_time("", ""));
}

}  // namespace
}  // namespace verger
