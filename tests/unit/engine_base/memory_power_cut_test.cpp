// What MemoryFileSystem leaves after a power cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "engine/base/memory_file_system.h"

namespace verger {
namespace {

using testing::HasSubstr;

class PowerCut : public testing::Test {
 protected:
  PowerCut() {
    EXPECT_TRUE(files_.make_directories("d"));
    EXPECT_TRUE(files_.sync_directory("/"));
    auto file = files_.open("d/a", OpenMode::kCreate).value();
    EXPECT_TRUE(file->write_at(0, as_bytes("durable")));
    EXPECT_TRUE(file->sync());
    EXPECT_TRUE(files_.sync_directory("d"));
  }
  std::unique_ptr<File> open(const Path& path) {
    return files_.open(path, OpenMode::kCreate).value();
  }
  std::string text_of(const Path& path) {
    const auto content = read_file(files_, path);
    return content ? std::string(as_text(*content)) : std::string(to_string(content.error().code));
  }

  MemoryFileSystem files_;
};

TEST_F(PowerCut, LosesWhatWasWrittenWithoutSync) {
  auto file = open("d/a");
  ASSERT_TRUE(file->write_at(3, as_bytes("ATION and more")));
  ASSERT_TRUE(file->resize(4));
  ASSERT_TRUE(file->write_at(2, as_bytes("xyz")));
  EXPECT_EQ(text_of("d/a"), "duxyz");
  files_.cut_power();
  EXPECT_EQ(text_of("d/a"), "durable");
}

TEST_F(PowerCut, KeepsWhatWasSyncedAndLosesWhatCameAfter) {
  auto file = open("d/a");
  ASSERT_TRUE(file->write_at(7, as_bytes("+synced")));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->write_at(0, as_bytes("LOST")));
  files_.cut_power();
  EXPECT_EQ(text_of("d/a"), "durable+synced");
}

TEST_F(PowerCut, RestoresWhatATruncationDropped) {
  auto file = open("d/a");
  const std::string large(50'000, 'x');
  ASSERT_TRUE(file->write_at(0, as_bytes(large)));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->resize(5'000));
  ASSERT_TRUE(file->resize(40'000));
  ASSERT_TRUE(file->write_at(30'000, as_bytes("y")));
  files_.cut_power();
  EXPECT_EQ(text_of("d/a"), large);
}

TEST_F(PowerCut, LosesAFileWhoseDirectoryWasNotSynced) {
  auto file = open("d/new");
  ASSERT_TRUE(file->write_at(0, as_bytes("content")));
  ASSERT_TRUE(file->sync());
  files_.cut_power();
  EXPECT_EQ(text_of("d/new"), "not_found");
}

TEST_F(PowerCut, KeepsTheNameButNotTheContentWithoutFileSync) {
  ASSERT_TRUE(open("d/new")->write_at(0, as_bytes("content")));
  ASSERT_TRUE(files_.sync_directory("d"));
  files_.cut_power();
  EXPECT_EQ(text_of("d/new"), "");
}

TEST_F(PowerCut, TakesBackARenameThatWasNotSynced) {
  {
    auto file = open("d/new");
    ASSERT_TRUE(file->write_at(0, as_bytes("new")));
    ASSERT_TRUE(file->sync());
    ASSERT_TRUE(files_.sync_directory("d"));
  }
  ASSERT_TRUE(files_.rename("d/new", "d/a"));
  EXPECT_EQ(text_of("d/a"), "new");
  files_.cut_power();
  EXPECT_EQ(text_of("d/a"), "durable");
  EXPECT_EQ(text_of("d/new"), "new");
  ASSERT_TRUE(files_.rename("d/new", "d/a"));
  ASSERT_TRUE(files_.sync_directory("d"));
  files_.cut_power();
  EXPECT_EQ(text_of("d/a"), "new");
  EXPECT_EQ(text_of("d/new"), "not_found");
}

TEST_F(PowerCut, TakesBackARemovalThatWasNotSynced) {
  ASSERT_TRUE(files_.remove("d/a"));
  files_.cut_power();
  EXPECT_EQ(text_of("d/a"), "durable");
  ASSERT_TRUE(files_.remove("d/a"));
  ASSERT_TRUE(files_.sync_directory("d"));
  files_.cut_power();
  EXPECT_EQ(text_of("d/a"), "not_found");
}

TEST_F(PowerCut, LosesADirectoryWhoseParentWasNotSynced) {
  ASSERT_TRUE(files_.make_directories("d/sub"));
  ASSERT_TRUE(open("d/sub/x")->sync());
  ASSERT_TRUE(files_.sync_directory("d/sub"));
  files_.cut_power();
  EXPECT_FALSE(files_.exists("d/sub").value());
}

TEST_F(PowerCut, NeverLeavesAFileInTwoDirectories) {
  ASSERT_TRUE(files_.make_directories("e"));
  ASSERT_TRUE(files_.sync_directory("/"));
  ASSERT_TRUE(open("d/x")->sync());
  ASSERT_TRUE(files_.rename("d/x", "e/x"));
  ASSERT_TRUE(files_.sync_directory("e"));
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    files_.cut_power(seed);
    EXPECT_TRUE(files_.exists("e/x").value());
    EXPECT_FALSE(files_.exists("d/x").value());
  }
}

TEST_F(PowerCut, FailsWhatWasOpenBefore) {
  auto file = open("d/a");
  auto lock = files_.lock("d/lock").value();
  files_.cut_power();
  Bytes bytes(1);
  EXPECT_EQ(file->read_at(0, bytes).error().code, Errc::kIo);
  EXPECT_EQ(file->write_at(0, as_bytes("x")).error().code, Errc::kIo);
  EXPECT_EQ(file->sync().error().code, Errc::kIo);
  EXPECT_EQ(file->resize(0).error().code, Errc::kIo);
  EXPECT_EQ(file->size().error().code, Errc::kIo);
  EXPECT_THAT(file->size().error().message, HasSubstr("d/a"));
  EXPECT_TRUE(files_.lock("d/lock"));
}

TEST_F(PowerCut, InTheMiddleOfAnOperationFailsIt) {
  auto file = open("d/a");
  files_.set_fault_hook([&](const DiskOperation&) -> std::optional<Error> {
    files_.cut_power();
    return std::nullopt;
  });
  EXPECT_EQ(file->write_at(0, as_bytes("LOST")).error().code, Errc::kIo);
  EXPECT_EQ(files_.rename("d/a", "d/b").error().code, Errc::kIo);
  files_.set_fault_hook(nullptr);
  EXPECT_EQ(text_of("d/a"), "durable");
}

TEST_F(PowerCut, AfterAFailedSyncEvenALaterSyncDoesNotSaveTheBytes) {
  {
    auto file = open("d/a");
    ASSERT_TRUE(file->write_at(0, as_bytes("LOST")));
    files_.set_fault_hook([](const DiskOperation&) { return Error{Errc::kIo, "injected"}; });
    EXPECT_EQ(file->sync().error().message, "injected");
    files_.set_fault_hook(nullptr);
    EXPECT_THAT(file->sync().error().message, HasSubstr("earlier sync failed"));
    EXPECT_THAT(file->write_at(0, as_bytes("x")).error().message, HasSubstr("earlier sync"));
  }
  auto again = open("d/a");
  ASSERT_TRUE(again->write_at(6, as_bytes("E!")));
  ASSERT_TRUE(again->sync());
  EXPECT_EQ(text_of("d/a"), "LOSTblE!");
  files_.cut_power();
  EXPECT_EQ(text_of("d/a"), "durablE!");
}

TEST_F(PowerCut, DoesNotFollowFromTheDeathOfTheProcess) {
  auto file = open("d/a");
  ASSERT_TRUE(file->write_at(0, as_bytes("DUR")));
  ASSERT_TRUE(files_.rename("d/a", "d/b"));
  files_.kill_process();
  EXPECT_EQ(file->size().error().code, Errc::kIo);
  EXPECT_EQ(text_of("d/b"), "DURable");
  files_.cut_power();  // what the dead process had not synced is still not synced
  EXPECT_EQ(text_of("d/a"), "durable");
}

TEST_F(PowerCut, TearsWritesAtSectorBoundariesOnly) {
  const std::string old(4 * 512, 'o');
  {
    auto file = open("d/torn");
    ASSERT_TRUE(file->write_at(0, as_bytes(old)));
    ASSERT_TRUE(file->sync());
    ASSERT_TRUE(files_.sync_directory("d"));
  }
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto copy = files_.clone();
    {
      auto file = copy->open("d/torn", OpenMode::kReadWrite).value();
      ASSERT_TRUE(file->write_at(100, as_bytes(std::string(1500, 'n'))));
    }
    copy->cut_power(seed);
    const auto text = std::string(as_text(read_file(*copy, "d/torn").value()));
    // Each sector is wholly as before or wholly as after.
    std::string kinds;
    for (std::size_t sector = 0; sector < 4; ++sector) {
      const std::size_t begin = sector == 0 ? 100 : 0;
      const std::size_t end = sector == 3 ? 64 : 512;
      const auto part = text.substr(sector * 512 + begin, end - begin);
      ASSERT_EQ(part.find_first_not_of(part[0]), std::string::npos) << seed;
      kinds += part[0];
    }
    outcomes.insert(kinds);
  }
  EXPECT_THAT(outcomes,
              testing::ElementsAre("nnnn", "nnno", "nnoo", "nooo", "onnn", "oonn", "ooon", "oooo"));
}

TEST_F(PowerCut, LetsIndependentWritesSurviveInAnyCombinationAndNamesInOrder) {
  std::set<std::string> contents;
  std::set<std::string> names;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto copy = files_.clone();
    {
      auto file = copy->open("d/a", OpenMode::kReadWrite).value();
      ASSERT_TRUE(file->write_at(0, as_bytes("1")));
      ASSERT_TRUE(file->write_at(1, as_bytes("2")));
      ASSERT_TRUE(copy->rename("d/a", "d/b"));
      ASSERT_TRUE(copy->rename("d/b", "d/c"));
    }
    copy->cut_power(seed);
    const auto entries = copy->list("d").value();
    ASSERT_EQ(entries.size(), 1U);
    names.insert(entries[0].name);
    contents.insert(std::string(as_text(read_file(*copy, "d" / Path(entries[0].name)).value())));
  }
  EXPECT_THAT(names, testing::ElementsAre("a", "b", "c"));
  EXPECT_THAT(contents, testing::ElementsAre("12rable", "1urable", "d2rable", "durable"));
}

TEST_F(PowerCut, IsTheSameForTheSameSeed) {
  const auto outcome = [&] {
    const auto copy = files_.clone();
    auto file = copy->open("d/a", OpenMode::kReadWrite).value();
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(file->write_at(static_cast<std::uint64_t>(i) * 300,
                                 as_bytes(std::string(700, static_cast<char>('A' + i % 26)))));
    }
    copy->cut_power(4711);
    return read_file(*copy, "d/a").value();
  };
  EXPECT_EQ(outcome(), outcome());
}

}  // namespace
}  // namespace verger
