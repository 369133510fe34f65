#include "controller/scheduler/notification_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace verger::controller {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

json failed() {
  return {{"id", "17-abcdef01"},       {"moment", "failed"},
          {"policy", "nightly"},       {"cluster", "orders"},
          {"run", "7980f017-0000"},    {"reason", "<!channel> n2 & n3 *differ* @here"},
          {"at", "2026-11-22T11:10Z"}, {"bytes_freed", nullptr}};
}

json body_of(std::string_view format) {
  return json::parse(notification_body(format, failed()).value());
}

TEST(NotificationFormat, OfJsonIsTheEventItself) {
  EXPECT_EQ(body_of(""), failed());
  EXPECT_EQ(body_of("json"), failed());
  EXPECT_EQ(notification_body("xml", failed()).error().code, Errc::kInvalidArgument);
}

TEST(NotificationFormat, OfChatServicesIsALineInWhichNothingIsAMentionOrALink) {
  EXPECT_EQ(
      body_of("slack"),
      json({{"text", "orders: run 7980f017 failed: &lt;!channel&gt; n2 &amp; n3 *differ* @here"},
            {"mrkdwn", false}}));
  for (const auto* format : {"mattermost", "discord"}) {
    const auto body = body_of(format);
    const std::string text = body.at(std::string(format) == "discord" ? "content" : "text");
    EXPECT_THAT(text, AllOf(HasSubstr("orders: run 7980f017 failed"), HasSubstr("\\*differ\\*"),
                            Not(HasSubstr("@here")), Not(HasSubstr("*differ*"))))
        << format;
  }
  EXPECT_EQ(body_of("discord").at("allowed_mentions").at("parse"), json::array());
}

TEST(NotificationFormat, ABackslashInFrontOfAFormatDoesNotBringItBack) {
  auto event = failed();
  event["reason"] = "\\*bold*";
  const auto body = json::parse(notification_body("mattermost", event).value());
  EXPECT_THAT(body.at("text").get<std::string>(), HasSubstr("\\\\\\*bold\\*"));
}

TEST(NotificationFormat, OfTeamsIsACard) {
  const auto attachment = body_of("teams").at("attachments").at(0);
  EXPECT_EQ(attachment.at("contentType"), "application/vnd.microsoft.card.adaptive");
  const auto& parts = attachment.at("content").at("body");
  EXPECT_THAT(parts.at(0).at("text").get<std::string>(), HasSubstr("orders: run 7980f017 failed"));
  EXPECT_EQ(parts.at(0).at("color"), "Attention");
  EXPECT_EQ(parts.at(1).at("facts").at(0).at("value"), "orders");
}

TEST(NotificationFormat, LongReasonsAreCutBetweenCharacters) {
  auto event = failed();
  std::string reason;
  for (int i = 0; i < 2'000; ++i) {
    reason += "\u00e9";
  }
  event["reason"] = reason;
  const auto body = notification_body("discord", event);
  ASSERT_TRUE(body.has_value());
  const std::string text = json::parse(*body).at("content");
  EXPECT_LT(text.size(), 2'000U);
  EXPECT_TRUE(text.ends_with("\u00e9\u2026"));
  // Each of these takes two bytes.
  event["reason"] = std::string(1'900, '_');
  const std::string escaped =
      json::parse(notification_body("discord", event).value()).at("content");
  EXPECT_LE(escaped.size(), 2'000U);
  EXPECT_TRUE(escaped.ends_with("\\_\u2026"));
}

TEST(NotificationFormat, WhatIsNoUtf8IsNoReasonToSendNothing) {
  auto event = failed();
  event["reason"] = "\xff\xfe of a node";
  for (const auto& format : notification_formats()) {
    const auto body = notification_body(format, event);
    ASSERT_TRUE(body.has_value()) << format;
    EXPECT_TRUE(json::accept(*body)) << format;
  }
}

TEST(NotificationFormat, OfMailHasEachMemberAndALineAsItsSubject) {
  auto event = failed();
  event["reason"] = "two\r\nBcc: eve@example.com";
  EXPECT_THAT(notification_line(event), Not(HasSubstr("\n")));
  EXPECT_THAT(notification_text(failed()),
              AllOf(HasSubstr("policy: nightly\n"), HasSubstr("at: 2026-11-22"),
                    Not(HasSubstr("bytes_freed"))));
}

TEST(NotificationFormat, TakesOnlyAddressesThatCannotEndACommand) {
  EXPECT_TRUE(is_mail_address("ops+verger@example.com"));
  for (const auto* wrong : {"", "ops", "@example.com", "ops@", "a@b@c", "a b@example.com",
                            "ops@example.com\r\nDATA", "<ops@example.com>", "a,b@example.com"}) {
    EXPECT_FALSE(is_mail_address(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace verger::controller
