#include "engine/logging/spdlog_log.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_directory.h"

namespace verger {
namespace {

using testing::MatchesRegex;
using testing::SizeIs;

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

TEST(LogLine, ShowsFieldsBehindTheMessage) {
  const LogField fields[] = {{"run", "r-1"}, {"path", "/a b"}, {"empty", ""}, {"sum", "a=b"}};
  EXPECT_EQ(detail::text_line("started", fields),
            R"(msg="started" run=r-1 path="/a b" empty="" sum="a=b")");
}

TEST(LogLine, IsLogfmtForAnyNameOfAField) {
  const LogField fields[] = {{"valid until", "2024"}, {"a=b\"c\n", "x"}};
  EXPECT_EQ(detail::text_line("a \"b\" c=d", fields),
            R"(msg="a \"b\" c=d" valid_until=2024 a_b_c_=x)");
}

TEST(LogLine, StaysOneLineForAnyContent) {
  const LogField fields[] = {{"reason", "two\nlines\t\"quoted\" \\ \x01"}, {"bytes", "\xff\xc3"}};
  EXPECT_EQ(detail::text_line("a\nb", fields),
            R"(msg="a\nb" reason="two\nlines\u0009\"quoted\" \\ \u0001" bytes="\ufffd\ufffd")");
}

TEST(LogLine, IsAJsonObjectOnRequest) {
  const LogField fields[] = {{"stream", "caf\xc3\xa9 \xf0\x9f\x90\x98"}};
  EXPECT_EQ(detail::json_line("2024-01-02T03:04:05Z", "info", "vergerd", "say \"hi\"", fields),
            R"({"time":"2024-01-02T03:04:05Z","level":"info","program":"vergerd",)"
            "\"message\":\"say \\\"hi\\\"\",\"stream\":\"caf\xc3\xa9 \xf0\x9f\x90\x98\"}");
}

TEST(LogLine, ReplacesBytesThatAreNoUtf8) {
  // Overlong, surrogate, above U+10FFFF, cut off.
  for (const auto* bytes : {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    const LogField fields[] = {{"x", bytes}};
    EXPECT_THAT(detail::text_line("m", fields), MatchesRegex(R"(msg="m" x="(\\ufffd)+")"));
  }
}

TEST(SpdlogLog, WritesTextWithTimeAndLevelToTheFile) {
  const test::TempDirectory directory;
  const auto file = directory.path() / "verger.log";
  auto log = make_log("vergerd", {.file = file, .to_stderr = false}).value();
  log->debug("below the level");
  log->info("started", {{"port", "2115"}});
  log->error("stopped {}");  // not a format string
  const auto lines = lines_of(file);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[0],
              MatchesRegex("time=20[0-9-]+T[0-9:.]+Z level=info msg=\"started\" port=2115"));
  EXPECT_THAT(lines[1],
              MatchesRegex("time=20[0-9-]+T[0-9:.]+Z level=error msg=\"stopped \\{\\}\""));
}

TEST(SpdlogLog, WritesJsonLinesOnRequest) {
  const test::TempDirectory directory;
  const auto file = directory.path() / "verger.log";
  auto log = make_log("vergerd",
                      {.level = LogLevel::kDebug, .json = true, .file = file, .to_stderr = false})
                 .value();
  log->debug("x", {{"run", "1"}});
  ASSERT_THAT(lines_of(file), SizeIs(1));
  EXPECT_THAT(lines_of(file)[0],
              MatchesRegex(R"(\{"time":"20[^"]+Z","level":"debug","program":"vergerd",)"
                           R"("message":"x","run":"1"\})"));
}

TEST(SpdlogLog, KeepsOldFilesWhenTheFileIsFull) {
  const test::TempDirectory directory;
  const auto file = directory.path() / "verger.log";
  auto log =
      make_log("p", {.file = file, .file_size_max = 200, .files_kept = 2, .to_stderr = false})
          .value();
  for (int i = 0; i < 50; ++i) {
    log->info("a line that fills the file");
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    EXPECT_LE(entry.file_size(), 200U);
    ++files;
  }
  EXPECT_EQ(files, 3U);
}

TEST(SpdlogLog, SaysWhichFileItCannotOpen) {
  const test::TempDirectory directory;
  std::ofstream(directory.path() / "file") << "x";
  const auto log = make_log("p", {.file = directory.path() / "file/verger.log"});
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, Errc::kIo);
  EXPECT_THAT(log.error().message, testing::HasSubstr("file/verger.log"));
}

TEST(SpdlogLog, KnowsItsLevelsByName) {
  EXPECT_EQ(parse_log_level("warning"), LogLevel::kWarning);
  EXPECT_EQ(parse_log_level("loud").error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace verger
