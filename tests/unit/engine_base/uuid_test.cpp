#include "engine/base/uuid.h"

#include <gtest/gtest.h>

#include "engine/base/digest.h"

namespace verger {
namespace {

TEST(Uuid, KeepsTheMixedByteOrderOfTheServer) {
  const auto uuid = Uuid::parse("00112233-4455-6677-8899-aabbccddeeff");
  ASSERT_TRUE(uuid);
  EXPECT_EQ(to_hex(uuid->bytes), "33221100554477668899aabbccddeeff");
  EXPECT_EQ(uuid->to_string(), "00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(Uuid::from_disk(uuid->bytes), *uuid);
}

TEST(Uuid, ReadsUpperCaseAndWritesLowerCase) {
  const auto uuid = Uuid::parse("ABCDEF01-2345-6789-ABCD-EF0123456789");
  ASSERT_TRUE(uuid);
  EXPECT_EQ(uuid->to_string(), "abcdef01-2345-6789-abcd-ef0123456789");
}

TEST(Uuid, RefusesWhatIsNoGuid) {
  for (const auto* text :
       {"", "00112233445566778899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeef",
        "00112233-4455-6677-8899-aabbccddeeff0", "g0112233-4455-6677-8899-aabbccddeeff",
        "001122334-455-6677-8899-aabbccddeeff", "00112233-4455-6677-8899-aabbccddee-f"}) {
    SCOPED_TRACE(text);
    const auto uuid = Uuid::parse(text);
    ASSERT_FALSE(uuid);
    EXPECT_EQ(uuid.error().code, Errc::kInvalidArgument);
  }
}

TEST(Uuid, KnowsTheZeroGuid) {
  EXPECT_TRUE(Uuid{}.is_zero());
  EXPECT_EQ(Uuid{}.to_string(), "00000000-0000-0000-0000-000000000000");
  EXPECT_FALSE(Uuid::parse("00000000-0000-0000-0000-000000000001")->is_zero());
}

}  // namespace
}  // namespace verger
