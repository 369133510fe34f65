#include "nodeagent/node/atom_format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace verger::node {
namespace {

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

std::string events_body(const std::string& data) {
  return R"([{"eventId":"fbf4a1a1-b4a3-4dfe-a01f-ec52c34e16e4","eventType":"t","data":)" + data +
         "}]";
}

// Writing JSON costs stack for each level: a million of them ended the node.
TEST(AtomFormat, TakesNoEventsThatAreNestedTooDeep) {
  const auto taken = atom::parse_events(events_body(nested(62)), false);
  ASSERT_TRUE(taken.has_value()) << taken.error();
  EXPECT_EQ(taken->size(), 1U);
  for (const std::size_t levels : {63U, 1'000'000U}) {
    const auto refused = atom::parse_events(events_body(nested(levels)), false);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error(), "Write request body invalid.");
  }
}

TEST(AtomFormat, ShowsStoredDataThatIsNestedTooDeepAsText) {
  streams::Event event;
  event.is_json = true;
  const auto show = [&](const std::string& data) {
    const auto bytes = as_bytes(data);
    event.data.assign(bytes.begin(), bytes.end());
    return atom::event_json(event).at("data");
  };
  EXPECT_TRUE(show(nested(64)).is_array());
  EXPECT_EQ(show(nested(1'000'000)), nested(1'000'000));
}

}  // namespace
}  // namespace verger::node
