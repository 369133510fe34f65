// Manual pages and completion have what `--help` of every command shows.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "tests/support/temp_directory.h"
#include "tests/unit/controller_cli/cli_output.h"

namespace verger::cli {
namespace {

using ::testing::HasSubstr;

/// What the help of one command lists.
struct HelpOf {
  std::vector<std::string> commands;
  std::vector<std::string> options;  ///< long names
};

HelpOf help_of(const std::vector<std::string>& path) {
  std::vector<const char*> words;
  for (const auto& word : path) {
    words.push_back(word.c_str());
  }
  words.push_back("--help");
  const auto said = verger(words);
  EXPECT_EQ(said.status, 0) << said.err;
  HelpOf out;
  bool commands = false;
  std::istringstream lines(said.out);
  for (std::string line; std::getline(lines, line);) {
    const bool heading = !line.empty() && line.front() != ' ';
    commands = heading ? line == "Subcommands:" : commands;
    if (!line.starts_with("  ") || line.starts_with("   ")) {
      continue;
    }
    const auto name = line.substr(2, line.find(' ', 2) - 2);
    if (commands) {
      out.commands.push_back(name);
    } else if (const auto begin = name.find("--"); begin != std::string::npos) {
      out.options.push_back(name.substr(begin, name.find(',', begin) - begin));
    }
  }
  return out;
}

using Commands = std::map<std::string, HelpOf>;  ///< by path: "plan scavenge"

void collect_help(const std::vector<std::string>& path, Commands& into) {
  const auto help = help_of(path);
  std::string name;
  for (const auto& word : path) {
    name += (name.empty() ? "" : " ") + word;
  }
  into.emplace(name, help);
  for (const auto& command : help.commands) {
    auto below = path;
    below.push_back(command);
    collect_help(below, into);
  }
}

const Commands& all_commands() {
  static const Commands kAll = [] {
    Commands all;
    collect_help({}, all);
    return all;
  }();
  return kAll;
}

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// The words that a line "BEGINNING words END" has between the two.
std::vector<std::string> words_behind(const std::string& text, const std::string& beginning,
                                      std::string_view end) {
  const auto at = text.find(beginning);
  if (at == std::string::npos) {
    return {};
  }
  const auto begin = at + beginning.size();
  return words_in(text.substr(begin, text.find(end, begin) - begin));
}

TEST(Completion, OfBashAndZshHasEveryCommandAndOptionOfTheHelp) {
  ASSERT_GT(all_commands().size(), 40U);
  for (const auto* shell : {"bash", "zsh"}) {
    const auto script = verger_without_vergerd({"completion", shell}).out;
    for (const auto& [path, help] : all_commands()) {
      SCOPED_TRACE(std::string(shell) + " " + path);
      const auto commands = words_behind(script, "\"" + path + ":commands\") echo \"", "\" ;;");
      const auto options = words_behind(script, "\"" + path + ":options\") echo \"", "\" ;;");
      EXPECT_THAT(commands, ::testing::IsSupersetOf(help.commands));
      EXPECT_THAT(options, ::testing::IsSupersetOf(help.options));
    }
  }
}

TEST(Completion, OfZshIsAFileOfItsFunctions) {
  const auto script = verger_without_vergerd({"completion", "zsh"}).out;
  EXPECT_TRUE(script.starts_with("#compdef verger\n"));
}

TEST(Completion, OfFishHasEveryCommandAndOptionOfTheHelp) {
  const auto script = verger_without_vergerd({"completion", "fish"}).out;
  for (const auto& [path, help] : all_commands()) {
    SCOPED_TRACE(path);
    std::string condition = path.empty() ? "__fish_use_subcommand" : "";
    for (const auto& word : words_in(path)) {
      condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
    }
    const auto at = script.find("-n '" + condition + "'");
    ASSERT_NE(at, std::string::npos);
    const auto offered = words_behind(script.substr(at), "-a '", "'\n");
    EXPECT_THAT(offered, ::testing::IsSupersetOf(help.commands));
    EXPECT_THAT(offered, ::testing::IsSupersetOf(help.options));
  }
}

TEST(ManualPages, HaveEveryCommandAndOptionOfTheHelp) {
  const test::TempDirectory directory;
  const auto said = verger({"man", directory.path().c_str()});
  ASSERT_EQ(said.status, 0) << said.err;
  for (const auto& [path, help] : all_commands()) {
    SCOPED_TRACE(path);
    auto name = path.empty() ? "verger" : "verger-" + path;
    std::ranges::replace(name, ' ', '-');
    std::ifstream file(directory.path() / (name + ".1"));
    std::string page((std::istreambuf_iterator<char>(file)), {});
    std::erase(page, '\\');
    for (const auto& each : help.commands) {
      EXPECT_THAT(page, HasSubstr("fB" + each + "fR\n"));
    }
    for (const auto& each : help.options) {
      EXPECT_THAT(page, HasSubstr(each));
    }
  }
}

TEST(Version, IsThatOfTheProgramWhereThereIsNoController) {
  const auto own = verger({"version", "--client"});
  EXPECT_EQ(own.status, kDone);
  EXPECT_TRUE(own.out.starts_with("verger "));
  EXPECT_EQ(own.out, verger({"--version"}).out);
  const auto both = verger_without_vergerd({"version"});
  EXPECT_EQ(both.status, kFailed);
  EXPECT_EQ(both.out, own.out);
  EXPECT_THAT(both.err, HasSubstr("127.0.0.1:1"));
}

}  // namespace
}  // namespace verger::cli
