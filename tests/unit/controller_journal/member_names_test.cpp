#include "controller/journal/member_names.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace verger::controller {
namespace {

using nlohmann::json;

TEST(MemberNames, AreSnakeCaseAtAnyDepth) {
  EXPECT_EQ(in_snake_case({{"bytesBefore", 1},
                           {"point", {{"effectiveNow", "x"}}},
                           {"list", {{{"quorumMargin", 2}}}},
                           {"already_so", "keepsItsValue"}}),
            json({{"bytes_before", 1},
                  {"point", {{"effective_now", "x"}}},
                  {"list", {{{"quorum_margin", 2}}}},
                  {"already_so", "keepsItsValue"}}));
}

TEST(MemberNames, ThatPeopleChoseStay) {
  EXPECT_EQ(in_snake_case({{"nodes", {{"dbNode", {{"lastFinished", 1}}}}},
                           {"labels", {{"costCentre", "a"}}},
                           {"X-Header", 1},
                           {"Upper", 2}}),
            json({{"nodes", {{"dbNode", {{"last_finished", 1}}}}},
                  {"labels", {{"costCentre", "a"}}},
                  {"X-Header", 1},
                  {"Upper", 2}}));
}

}  // namespace
}  // namespace verger::controller
