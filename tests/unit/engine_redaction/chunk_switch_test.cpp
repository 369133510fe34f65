// A prepared file takes the place of a live chunk file, or is refused with the server's reason.
#include "engine/redaction/chunk_switch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "engine/base/memory_file_system.h"
#include "engine/log/chunk.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"

namespace verger::redaction {
namespace {

const Path kDatabase = "/db";
const std::string kTarget = "chunk-000000.000000";

/// Three completed chunks and the active one.
class SwitchOfAChunk : public ::testing::Test {
 protected:
  SwitchOfAChunk() : builder(disk, kDatabase, {.chunk_size = 4096}) {
    for (int n = 0; n < 3; ++n) {
      builder.write("orders", 4, 200);
      builder.point();
    }
    builder.write("orders", 1);
  }

  Bytes content(const std::string& name) { return value(read_file(disk, kDatabase / name)); }
  /// Content with the MD5 that then is right.
  static Bytes sealed(Bytes bytes) {
    const auto sum = md5(ByteView(bytes).first(bytes.size() - sizeof(Md5Digest)));
    std::ranges::copy(sum, bytes.end() - sizeof(Md5Digest));
    return bytes;
  }
  void prepare(const Bytes& bytes, const std::string& name = "new.tmp") {
    ok(write_file_durably(disk, kDatabase / name, bytes));
  }
  SwitchResult switched(const std::string& target = kTarget,
                        const std::string& new_file = "new.tmp") {
    ChunkSwitchJob job(disk, log(), target, new_file);
    EXPECT_EQ(value(job.step({})).kind, StepOutcome::Kind::kDone);
    detail = job.detail();
    return job.result();
  }
  /// All that the directory holds, in order to see that a refusal changes nothing.
  std::map<std::string, Bytes> all_files() {
    std::map<std::string, Bytes> found;
    for (const auto& entry : value(disk.list(kDatabase))) {
      if (!entry.is_directory && !entry.name.ends_with(".lock")) {
        found[entry.name] = content(entry.name);
      }
    }
    return found;
  }
  log::TransactionLog& log() { return builder.database().transaction_log(); }

  MemoryFileSystem disk;
  test::DatabaseBuilder builder;
  std::string detail;
};

TEST_F(SwitchOfAChunk, IsSeenByReadersAtOnceAndRemovesTheFormerFile) {
  auto bytes = content(kTarget);
  const auto text = as_text(bytes).find(R"({"n":)");
  ASSERT_NE(text, std::string_view::npos);
  bytes[text + 5] = std::byte{'x'};
  prepare(sealed(std::move(bytes)));
  EXPECT_EQ(switched(), SwitchResult::kSuccess);
  EXPECT_EQ(detail, "chunk-000000.000001");
  const auto read = value(builder.database().read_forward("orders", EventNumber(0), 1));
  EXPECT_TRUE(as_text(read.events.at(0).data).starts_with(R"({"n":x)"));
  const auto now = all_files();
  EXPECT_FALSE(now.contains(kTarget));
  EXPECT_FALSE(now.contains("new.tmp"));
  // The next one needs the new name.
  prepare(now.at("chunk-000000.000001"));
  EXPECT_EQ(switched(), SwitchResult::kTargetNotFound);
  // A copy that kept the mode of its source.
  ok(disk.set_read_only(kDatabase / "new.tmp", true));
  EXPECT_EQ(switched("chunk-000000.000001"), SwitchResult::kSuccess);
}

TEST_F(SwitchOfAChunk, IsRefusedByItsNames) {
  prepare(content(kTarget));
  prepare(content(kTarget), "new.dat");
  const auto before = all_files();
  EXPECT_EQ(switched("../" + kTarget), SwitchResult::kTargetNameInvalid);
  EXPECT_EQ(switched("db\\" + kTarget), SwitchResult::kTargetNameInvalid);
  EXPECT_EQ(switched("chunk..000000"), SwitchResult::kTargetNameInvalid);
  EXPECT_EQ(switched("writer.chk"), SwitchResult::kTargetNameInvalid);
  EXPECT_EQ(switched(kTarget, "../new.tmp"), SwitchResult::kNewNameInvalid);
  EXPECT_EQ(switched(kTarget, "new.dat"), SwitchResult::kNewNameInvalid);
  // Both are wrong: the target's directory counts first, then the other's, then the target's form.
  EXPECT_EQ(switched("writer.chk", "a/b"), SwitchResult::kNewNameInvalid);
  EXPECT_EQ(switched("chunk-000000.000009"), SwitchResult::kTargetNotFound);
  EXPECT_EQ(switched(kTarget, "none.tmp"), SwitchResult::kNewNotFound);
  EXPECT_EQ(all_files(), before);
}

TEST_F(SwitchOfAChunk, IsRefusedWhereTheTargetIsNoLiveCompletedChunk) {
  prepare(content(kTarget));
  prepare(content(kTarget), "chunk-000000.000007");
  prepare(content(kTarget), "chunk-000044.000000");
  const auto before = all_files();
  EXPECT_EQ(switched("chunk-000044.000000"), SwitchResult::kTargetExcessive);
  EXPECT_EQ(switched("chunk-000000.000007"), SwitchResult::kTargetInactive);
  EXPECT_EQ(switched("chunk-000003.000000"), SwitchResult::kTargetNotCompleted);
  EXPECT_EQ(all_files(), before);
}

TEST_F(SwitchOfAChunk, IsRefusedForWhatTheNewFileHolds) {
  const auto good = content(kTarget);
  const auto refused_as = [&](const Bytes& bytes, SwitchResult result) {
    prepare(bytes);
    const auto before = all_files();
    EXPECT_EQ(switched(), result) << reason_of(result) << " " << detail;
    EXPECT_EQ(all_files(), before);
  };
  refused_as(Bytes(good.begin(), good.begin() + 100), SwitchResult::kNewHeaderOrFooterInvalid);
  auto other_type = good;
  other_type[0] = std::byte{0x77};
  refused_as(sealed(other_type), SwitchResult::kNewHeaderOrFooterInvalid);
  refused_as(content("chunk-000001.000000"), SwitchResult::kRangeDoesNotMatch);
  auto open = good;
  open[open.size() - log::kChunkFooterSize] &= std::byte{0xFE};
  refused_as(open, SwitchResult::kNewNotCompleted);
  auto damaged = good;
  damaged[300] ^= std::byte{1};
  refused_as(damaged, SwitchResult::kNewHashInvalid);
  // Header and footer are a chunk's, and what is between them is not as long as they say.
  auto shorter = good;
  shorter.erase(shorter.begin() + 256, shorter.begin() + 512);
  refused_as(sealed(shorter), SwitchResult::kNewOpenFailed);
}

TEST_F(SwitchOfAChunk, LeavesEverythingAsItWasWhereTheDiskFails) {
  prepare(content(kTarget));
  const auto before = all_files();
  disk.set_fault_hook([](const DiskOperation&) { return Error{Errc::kIo, "no"}; });
  EXPECT_EQ(switched(), SwitchResult::kUnexpectedError);
  disk.set_fault_hook({});
  EXPECT_EQ(all_files(), before);
}

TEST_F(SwitchOfAChunk, HasATextForEachRefusal) {
  std::set<std::string_view> texts;
  for (int n = 1; n <= static_cast<int>(SwitchResult::kTargetFormatNotSupported); ++n) {
    const auto text = reason_of(static_cast<SwitchResult>(n));
    EXPECT_TRUE(text.ends_with('.')) << n;
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), 14U);
}

}  // namespace
}  // namespace verger::redaction
