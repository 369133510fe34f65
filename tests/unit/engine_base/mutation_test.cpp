#include "engine/base/mutation.h"

#include <gtest/gtest.h>

namespace verger {
namespace {

TEST(Mutation, IsTheOneThatWasSet) {
  EXPECT_FALSE(is_mutated("disk-ignored"));
  set_mutation("disk-ignored");
  EXPECT_TRUE(is_mutated("disk-ignored"));
  EXPECT_TRUE(is_mutated("disk", "-ignored"));
  EXPECT_FALSE(is_mutated("disk"));
  EXPECT_FALSE(is_mutated("lag", "-ignored"));
  EXPECT_FALSE(is_mutated("disk-ign", "-ignored"));
  set_mutation("");
  EXPECT_FALSE(is_mutated("disk-ignored"));
}

}  // namespace
}  // namespace verger
