// The file that the package installs as /etc/verger/vergerd.yaml.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/daemon/vergerd_options.h"
#include "engine/settings/daemon_call.h"
#include "tests/support/annotated_file.h"

namespace verger::controller {
namespace {

std::string default_file() {
  VergerdOptions options;
  settings::Settings all("vergerd", "");
  add_options(all, options);
  return settings::defaults_of(all, {"--data", "/var/lib/verger"}, "vergerd").value_or("");
}

TEST(VergerdConfiguration, OfThePackageIsAccepted) {
  VergerdOptions options;
  settings::Settings all("vergerd", "");
  add_options(all, options);
  const test::FileOfDefaults file(default_file(), {});
  const auto parsed = all.parse({"--config", file.path().string()}, {});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const auto checked = check_options(options);
  EXPECT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_EQ(options.data, "/var/lib/verger");
  EXPECT_THAT(all.warnings(), ::testing::IsEmpty());
}

TEST(VergerdConfiguration, HasEveryOptionWithItsDefault) {
  const VergerdOptions defaults;
  VergerdOptions options;
  settings::Settings all("vergerd", "");
  add_options(all, options);
  const test::FileOfDefaults file(default_file(), all.effective());
  EXPECT_GT(file.count(), 40);
  const auto parsed = all.parse({"--config", file.path().string()}, {});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const auto checked = check_options(options);
  EXPECT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_EQ(options.port, defaults.port);
  EXPECT_EQ(options.journal_prefix, defaults.journal_prefix);
  EXPECT_EQ(options.keep_audit_days, defaults.keep_audit_days);
  for (const auto& option : all.effective()) {
    if (!option.hidden && option.name != "Config") {
      EXPECT_NE(option.source, settings::Source::kDefault) << option.name;
    }
  }
}

}  // namespace
}  // namespace verger::controller
