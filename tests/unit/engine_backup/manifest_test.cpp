#include "engine/backup/manifest.h"

#include <gtest/gtest.h>

#include "engine/base/file_system.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"

namespace verger::backup {
namespace {

Manifest example() {
  Manifest manifest;
  manifest.id = make_generation_id(test::kTestTime, 7);
  manifest.source = {"n1", "orders", "host", "/var/lib/db", "24.6.0", "live"};
  manifest.started_at = manifest.checkpoints_at = manifest.finished_at = test::kTestTime;
  manifest.positions.chunk_size = 4096;
  manifest.positions.writer = LogPosition(9000);
  manifest.positions.end = manifest.positions.chaser = LogPosition(8800);
  manifest.positions.epoch_id = Uuid::from_disk(std::array<std::byte, 16>{std::byte{5}});
  manifest.digests = BackupDigests{.chunks = {sha256(as_bytes("a"))},
                                   .logical = sha256(as_bytes("b")),
                                   .readable = sha256(as_bytes("c")),
                                   .readable_now = test::kTestTime,
                                   .records = 12};
  manifest.files = {{.path = "chunk-000000.000000",
                     .kind = FileKind::kChunk,
                     .size = 100,
                     .restored_size = 4096,
                     .sha256 = sha256(as_bytes("d")),
                     .identity = "0011"},
                    {.path = "index/stream-existence/streamExistenceFilter.chk",
                     .kind = FileKind::kExistenceFilter,
                     .size = 8,
                     .restored_size = 8,
                     .sha256 = sha256(as_bytes("e")),
                     .identity = {}}};
  manifest.warnings = {"one"};
  return manifest;
}

TEST(BackupManifest, ReadsWhatItWrites) {
  const auto manifest = example();
  EXPECT_EQ(value(decode_manifest(as_bytes(encode_manifest(manifest)))), manifest);
  EXPECT_EQ(manifest.id, "20240101t000000z-00000007");
  EXPECT_TRUE(is_generation_id(manifest.id));
  EXPECT_FALSE(is_generation_id("20240101t000000z-0000000G"));
  EXPECT_EQ(manifest.stored_bytes(), 108U);
  EXPECT_EQ(manifest.restored_bytes(), 4104U);
}

TEST(BackupManifest, FindsEachFlippedBit) {
  auto text = encode_manifest(example());
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
      EXPECT_FALSE(decode_manifest(as_bytes(text))) << at << " bit " << bit;
      text[at] = static_cast<char>(text[at] ^ (1 << bit));
    }
  }
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(decode_manifest(as_bytes(std::string_view(text).substr(0, size)))) << size;
  }
}

TEST(BackupManifest, RefusesPathsThatLeadOutOfTheDirectory) {
  for (const auto* path : {"../etc/passwd", "/etc/passwd", "index/../../x", "", "."}) {
    auto manifest = example();
    manifest.files[0].path = path;
    const auto decoded = decode_manifest(as_bytes(encode_manifest(manifest)));
    ASSERT_FALSE(decoded) << path;
    EXPECT_EQ(decoded.error().code, Errc::kCorruption);
  }
}

TEST(BackupManifest, NamesANewerVersion) {
  auto text = encode_manifest(example());
  text.replace(text.find(" 1 "), 3, " 2 ");
  EXPECT_EQ(decode_manifest(as_bytes(text)).error().code, Errc::kUnsupported);
}

}  // namespace
}  // namespace verger::backup
