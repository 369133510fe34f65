#include "nodeagent/api/json_view.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/random.h"
#include "nodeagent/api/json_text.h"

namespace verger::api {
namespace {

using nlohmann::json;

/// All of `view` says what `value` does.
bool same(JsonView view, const json& value) {
  if (value.is_object()) {
    const JsonMembers members(view);
    return view.is_object() && !members.find("not there") &&
           std::ranges::all_of(value.items(), [&](const auto& member) {
             const auto found = view.find(member.key());
             const auto again = members.find(member.key());
             return found && again && found->text() == again->text() &&
                    same(*found, member.value());
           });
  }
  if (value.is_array()) {
    const auto values = view.values();
    return view.is_array() && values.size() == value.size() &&
           std::ranges::equal(values, value, [](JsonView a, const json& b) { return same(a, b); });
  }
  if (value.is_string()) {
    return view.is_string() && view.string() == value.get<std::string>();
  }
  if (value.is_number_unsigned()) {
    return view.is_integer() && view.unsigned_number() == value.get<std::uint64_t>();
  }
  if (value.is_number_integer()) {
    return view.is_integer() && view.signed_number() == value.get<std::int64_t>();
  }
  if (value.is_boolean()) {
    return view.is_boolean() && view.boolean() == value.get<bool>();
  }
  return value.is_null() ? view.is_null() : !view.is_integer() && json::parse(view.text()) == value;
}

/// The other reader is the measure; but for NUL, which ends a document there.
void expect_the_same(const std::string& text) {
  if (text.contains('\0')) {
    return;
  }
  const auto ours = JsonDocument::parse(text, "text");
  const auto theirs = parse_json(text, "text");
  ASSERT_EQ(ours.has_value(), theirs.has_value()) << text;
  if (ours) {
    EXPECT_TRUE(same(ours->root(), *theirs)) << text;
  } else {
    EXPECT_EQ(ours.error().message, theirs.error().message);
  }
}

constexpr std::array<std::string_view, 10> kTexts = {
    R"({"members":[{"instanceId":"8db6","isAlive":true,"port":2113},{"x":null,"y":[]}],"n":-12})",
    R"([0, -0, 1, -1, 9223372036854775807, -9223372036854775808, 18446744073709551615])",
    R"([18446744073709551616, -9223372036854775809, 1.5, -0.25e-3, 1E+5, 1e400, 1e-400, 01])",
    R"({"a\u0041\n":"\"\\\/\b\f\r\t","\ud83d\ude00":"\u00e9","a":1,"a":2})",
    "{\"\xC3\xA9\":\"\xE2\x82\xAC\xF0\x9F\x98\x80\xED\x9F\xBF\xEF\xBF\xBF\xF4\x8F\xBF\xBF\"}",
    "\xEF\xBB\xBF {\"a\" :\t[ ] ,\r\n \"b\": { } } ",
    R"([true,false,null,"",{"":[[[]]]}])",
    R"(["\ud800","\udc00","\ud800\u0041","\u12G4"])",
    R"("alone")",
    R"({"result":"{\"inner\":[1,2]}","at":"2024-01-02T00:00:00.0000000Z"})",
};

TEST(JsonView, ReadsWhatTheOtherReaderReads) {
  for (const auto text : kTexts) {
    expect_the_same(std::string(text));
  }
  for (const auto* text : {"",
                           " ",
                           "{",
                           "[1,]",
                           "[,1]",
                           "{\"a\":1,}",
                           "{\"a\"}",
                           "{1:2}",
                           "[1 2]",
                           "nul",
                           "truex",
                           "-",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "\"open",
                           "[1]]",
                           "{}{}",
                           "\"\x01\"",
                           "\"\xC0\x80\"",
                           "\"\xED\xA0\x80\"",
                           "\"\xF4\x90\x80\x80\"",
                           "\"\xC3\"",
                           "'a'",
                           "// no\n1",
                           "\"\\u12\"",
                           "\"\\x\"",
                           "\"\\"}) {
    expect_the_same(text);
  }
}

TEST(JsonView, AgreesAboutTextsThatSomethingHappenedTo) {
  SeededRandom random(7);
  constexpr std::string_view kSpares = "{}[]\",:\\u0123456789.eE+-tfn \x80\xC3\xE2\xF0";
  for (int round = 0; round < 5'000; ++round) {
    std::string text(kTexts.at(random.below(kTexts.size())));
    for (auto changes = 1 + random.below(3); changes > 0 && !text.empty(); --changes) {
      const auto at = random.below(text.size());
      switch (random.below(3)) {
        case 0:
          text[at] = kSpares[random.below(kSpares.size())];
          break;
        case 1:
          text.erase(at, 1 + random.below(3));
          break;
        default:
          text.insert(at, 1, kSpares[random.below(kSpares.size())]);
          break;
      }
    }
    expect_the_same(text);
    if (HasFailure()) {
      return;
    }
  }
}

TEST(JsonView, IsAsDeepAsTheLimit) {
  for (const std::size_t depth : {63U, 64U, 65U, 66U}) {
    expect_the_same(std::string(depth, '[') + std::string(depth, ']'));
  }
}

TEST(JsonView, ANulEndsNoDocument) {
  EXPECT_FALSE(JsonDocument::parse(std::string_view("{}\0more", 7), "text").has_value());
}

}  // namespace
}  // namespace verger::api
