// Compressed and encrypted objects: what is read is what was written, and every change is found.
#include "engine/backup/sealed_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ostream>

#include "engine/backup/detail/sealed_reader.h"
#include "engine/backup/detail/sealed_writer.h"
#include "tests/unit/engine_backup/backup_case.h"
#include "tests/unit/engine_backup/sealed_case.h"

namespace verger::backup {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Mode {
  const char* name;
  Compression compression;
  bool encrypted;
  // In names of tests; not its bytes, which hold an address.
  friend void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }
};

class Sealed : public ::testing::TestWithParam<Mode> {
 protected:
  std::unique_ptr<SealedStore> open(std::optional<KeyRing> with) {
    return sealed_store(disk, random, GetParam().compression, std::move(with));
  }

  MemoryFileSystem disk;
  SeededRandom random{7};
  KeyRing keys = KeyRing::make(random);
  std::unique_ptr<SealedStore> store =
      open(GetParam().encrypted ? std::optional(keys) : std::nullopt);
};

INSTANTIATE_TEST_SUITE_P(, Sealed,
                         ::testing::Values(Mode{"Compressed", Compression::kZstd, false},
                                           Mode{"Encrypted", Compression::kNone, true},
                                           Mode{"Both", Compression::kZstd, true}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Sealed, ReadsWhatItWroteAroundTheBoundsOfSegments) {
  std::vector<std::size_t> sizes = {0,
                                    1,
                                    17,
                                    kSegment - 1,
                                    kSegment,
                                    kSegment + 1,
                                    2 * kSegment - 1,
                                    2 * kSegment,
                                    2 * kSegment + 1};
  for (int i = 0; i < 6; ++i) {
    sizes.push_back(random.below(3 * kSegment));
  }
  for (const auto size : sizes) {
    SCOPED_TRACE(size);
    const auto content = some_content(size, size + 1);
    const auto writer = value(store->create_blob());
    for (std::size_t at = 0; at < size;) {
      const auto part = std::min<std::size_t>(size - at, 1 + random.below(kSegment + kSegment / 2));
      ok(writer->append(ByteView(content).subspan(at, part)));
      at += part;
    }
    const auto digest = sha256(content);
    ok(writer->commit(digest));
    EXPECT_EQ(value(store->blob_size(digest)), size);
    ASSERT_TRUE(value(read_content(*store, digest)) == content);
    const auto reader = value(store->open_blob(digest));
    for (int i = 0; i < 20 && size > 0; ++i) {
      const auto at = random.below(size);
      Bytes part(1 + random.below(std::min<std::uint64_t>(size - at, 70'000)));
      ok(reader->read_exact(at, part));
      ASSERT_TRUE(same_bytes(part, ByteView(content).subspan(at, part.size()))) << at;
    }
    Bytes beyond(1);
    EXPECT_EQ(reader->read_exact(size, beyond).error().code, Errc::kCorruption);
  }
}

TEST_P(Sealed, FindsEveryChangedByteOfABlob) {
  const auto digest = value(store_content(*store, some_content(3'000, 1)));
  const auto path = object_path(*store, digest);
  auto object = value(read_file(disk, path));
  for (std::size_t at = 0; at < object.size(); ++at) {
    const auto change = std::byte{1} << (at % 8);
    object[at] ^= change;
    ok(write_file_durably(disk, path, object));
    const auto read = read_content(*store, digest);
    // Without encryption, an object that does not begin as a sealed one is content of its own.
    EXPECT_TRUE(!read || (at < detail::kSealedMagic.size() && !GetParam().encrypted &&
                          sha256(*read) != digest))
        << at;
    EXPECT_TRUE(read || read.error().code == Errc::kCorruption) << at;
    object[at] ^= change;
  }
}

TEST_P(Sealed, FindsChangesInEachPartOfAnObjectOfManySegments) {
  const auto digest = value(store_content(*store, some_content(3 * kSegment + 500, 2)));
  const auto path = object_path(*store, digest);
  auto object = value(read_file(disk, path));
  std::vector<std::size_t> places;
  for (std::size_t at = detail::kSealedMagic.size(); at < detail::kSealedHeaderSize; at += 5) {
    places.push_back(at);
  }
  // Index and footer, and the tag of the last segment.
  for (std::size_t back = 1; back < 100; back += 3) {
    places.push_back(object.size() - back);
  }
  for (int i = 0; i < 40; ++i) {
    places.push_back(detail::kSealedHeaderSize +
                     random.below(object.size() - detail::kSealedHeaderSize));
  }
  for (const auto at : places) {
    object[at] ^= std::byte{0x10};
    ok(write_file_durably(disk, path, object));
    const auto read = read_content(*store, digest);
    ASSERT_FALSE(read) << at;
    EXPECT_EQ(read.error().code, Errc::kCorruption) << at;
    EXPECT_THAT(read.error().message, HasSubstr("blob")) << at;
    object[at] ^= std::byte{0x10};
  }
}

TEST_P(Sealed, RefusesAnObjectThatWasCutOrExtended) {
  const auto digest = value(store_content(*store, some_content(700, 3)));
  const auto path = object_path(*store, digest);
  const auto object = value(read_file(disk, path));
  for (std::size_t size = detail::kSealedMagic.size(); size < object.size(); ++size) {
    ok(write_file_durably(disk, path, ByteView(object).first(size)));
    EXPECT_FALSE(read_content(*store, digest)) << size;
  }
  for (const std::size_t more : {1UZ, 16UZ, object.size()}) {
    auto longer = object;
    append_bytes(longer, ByteView(object).first(more));
    ok(write_file_durably(disk, path, longer));
    EXPECT_FALSE(read_content(*store, digest)) << more;
  }
}

TEST_P(Sealed, RefusesABlobUnderAnotherName) {
  const auto one = value(store_content(*store, some_content(500, 4)));
  const auto two = value(store_content(*store, some_content(500, 5)));
  ok(disk.rename(object_path(*store, one), object_path(*store, two)));
  const auto read = read_content(*store, two);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kCorruption);
}

TEST_P(Sealed, TakesADamagedBlobForNoneSoThatItIsStoredAgain) {
  const auto content = some_content(500, 6);
  const auto digest = value(store_content(*store, content));
  const auto path = object_path(*store, digest);
  auto object = value(read_file(disk, path));
  object.back() ^= std::byte{1};
  ok(write_file_durably(disk, path, object));
  EXPECT_EQ(value(store->blob_size(digest)), std::nullopt);
  value(store_content(*store, content));
  EXPECT_EQ(value(read_content(*store, digest)), content);
}

TEST(SealedSegments, OfAnySizeAreWholeOrRefused) {
  SeededRandom random(12);
  const auto keys = KeyRing::make(random);
  const auto make = [&](ByteView content, const KeyRing* with, bool compressed) {
    Bytes object;
    detail::SealedWriter writer(
        [&object](ByteView bytes) -> Result<void> {
          append_bytes(object, bytes);
          return {};
        },
        with, compressed, random, /*segment_size=*/16);
    ok(writer.append(content));
    ok(writer.finish("blob"));
    return object;
  };
  for (const std::size_t size : {0UZ, 1UZ, 15UZ, 16UZ, 17UZ, 31UZ, 32UZ, 33UZ, 47UZ}) {
    SCOPED_TRACE(size);
    const auto content = some_content(size, 3);
    for (const auto* with : {static_cast<const KeyRing*>(nullptr), &keys}) {
      auto object = make(content, with, with == nullptr);
      EXPECT_EQ(value(detail::open_content(object, "blob", with)), content);
      EXPECT_FALSE(detail::open_content(object, "blo", with));
      for (std::size_t at = 0; at < object.size(); ++at) {
        object[at] ^= std::byte{0x20};
        EXPECT_FALSE(detail::open_content(object, "blob", with)) << at;
        object[at] ^= std::byte{0x20};
        EXPECT_FALSE(detail::open_content(ByteView(object).first(at), "blob", with)) << at;
      }
    }
  }
  for (int i = 0; i < 20; ++i) {
    const auto content = some_content(random.below(60'000), 3);
    auto object = make(content, &keys, i % 2 == 0);
    ASSERT_EQ(value(detail::open_content(object, "blob", &keys)), content);
    const auto at = random.below(object.size());
    object[at] ^= std::byte{1} << random.below(8);
    EXPECT_FALSE(detail::open_content(object, "blob", &keys)) << at;
  }
}

TEST(SealedSettings, WhatWasCompressedIsReadWithoutTheSetting) {
  MemoryFileSystem disk;
  SeededRandom random(3);
  const auto with = sealed_store(disk, random, Compression::kZstd, std::nullopt);
  const auto without = sealed_store(disk, random, Compression::kNone, std::nullopt);
  const auto content = Bytes(100'000, std::byte{5});
  const auto digest = value(store_content(*with, content));
  EXPECT_LT(value(with->list_blobs())[0].size, 1000U);
  EXPECT_EQ(value(without->blob_size(digest)), content.size());
  EXPECT_EQ(value(read_content(*without, digest)), content);
  // Stored again as it is.
  value(store_content(*without, content));
  EXPECT_EQ(value(without->list_blobs())[0].size, content.size());
  EXPECT_EQ(value(read_content(*with, digest)), content);
  ok(with->put("generations/one", as_bytes("readable by a person")));
  EXPECT_EQ(as_text(value(read_file(disk, "/store/generations/one"))), "readable by a person");
}

TEST(SealedSettings, ContentThatLooksSealedIsContent) {
  MemoryFileSystem disk;
  SeededRandom random(3);
  const auto inner = sealed_store(disk, random, Compression::kZstd, std::nullopt);
  const auto digest = value(store_content(*inner, as_bytes("inside")));
  const auto object = value(read_file(disk, object_path(*inner, digest)));
  const auto plain = sealed_store(disk, random, Compression::kNone, std::nullopt);
  for (const auto& content : {object, bytes_of("vrgrseal"), bytes_of("vrgr"), Bytes()}) {
    const auto again = value(store_content(*plain, content));
    EXPECT_EQ(value(plain->blob_size(again)), content.size());
    EXPECT_EQ(value(read_content(*plain, again)), content);
  }
}

TEST(SealedDisk, ABlobIsThereWhollyOrNotWhereverThePowerGoes) {
  SeededRandom random(5);
  const auto keys = KeyRing::make(random);
  const auto content = some_content(kSegment + 1000, 1);
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    MemoryFileSystem disk;
    const auto store = sealed_store(disk, random, Compression::kZstd, keys);
    disk.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
      if (operation.number != nth) {
        return std::nullopt;
      }
      disk.cut_power(nth);
      return Error{Errc::kIo, "the power went"};
    });
    const bool done = store_content(*store, content).has_value() &&
                      store->put("repository", as_bytes("mark")).has_value();
    disk.set_fault_hook({});
    const auto digest = sha256(content);
    if (value(store->blob_size(digest)).has_value()) {
      EXPECT_EQ(value(read_content(*store, digest)), content);
    }
    if (const auto mark = store->get("repository"); !mark) {
      EXPECT_EQ(mark.error().code, Errc::kNotFound) << mark.error().message;
    }
    if (done) {
      EXPECT_EQ(value(read_content(*store, digest)), content);
      break;
    }
    value(store_content(*store, content));
    EXPECT_EQ(value(read_content(*store, digest)), content);
  }
}

/// Backups of a database in a store that compresses and encrypts.
class SealedBackups : public ::testing::Test {
 protected:
  SealedBackups() { backup.fill(60); }
  Manifest back_up(const std::optional<Manifest>& parent) {
    backup.builder.close();
    auto options = backup.options(SourceState::kStopped);
    options.parent = parent;
    BackupJob job(backup.disk, repository, options, backup.clock, backup.random, null_log());
    ok(run_to_end(job));
    copied = job.progress().copied;
    backup.builder.open();
    backup.clock.advance_seconds(60);
    return job.manifest();
  }
  std::vector<BackupDamage> verify(const Manifest& manifest) {
    VerifyBytesJob job(*store, manifest);
    ok(run_to_end(job));
    return job.damage();
  }

  BackupCase backup;
  std::unique_ptr<SealedStore> store =
      sealed_store(backup.disk, backup.random, Compression::kZstd, KeyRing::make(backup.random));
  Repository repository = value(Repository::open(*store, Repository::Create::kIfMissing));
  std::uint64_t copied = 0;
};

TEST_F(SealedBackups, AreReusedVerifiedRestoredAndDeletedAsOthers) {
  const auto first = back_up(std::nullopt);
  const auto all = copied;
  backup.builder.write("more", 5, 3000);
  const auto second = back_up(first);
  EXPECT_LT(copied, all);
  EXPECT_GT(second.reused_bytes, 0U);
  EXPECT_THAT(verify(first), IsEmpty());
  const auto blobs = value(store->list_blobs()).size();
  ok(repository.mark_deleted(first.id, backup.clock.now()));
  backup.clock.advance_seconds(10);
  EXPECT_GT(value(repository.sweep(backup.clock.now(), backup.clock.now())).blobs, 0U);
  EXPECT_LT(value(store->list_blobs()).size(), blobs);
  EXPECT_THAT(verify(second), IsEmpty());
  {
    RestoreOptions how;
    how.directory = "/restored";
    RestoreJob job(backup.disk, *store, second, how, backup.clock, backup.random, null_log());
    ok(run_to_end(job));
  }
  backup.builder.close();
  EXPECT_EQ(backup.digest(*backup.open("/restored"), second.positions.end),
            backup.digest(*backup.open("/db"), second.positions.end));
}

TEST_F(SealedBackups, DamageIsFoundAndNamed) {
  const auto manifest = back_up(std::nullopt);
  const auto& file = manifest.files.front();
  const auto path = object_path(*store, file.sha256);
  auto object = value(read_file(backup.disk, path));
  object[object.size() / 2] ^= std::byte{1};
  ok(write_file_durably(backup.disk, path, object));
  const auto damage = verify(manifest);
  ASSERT_EQ(damage.size(), 1U);
  EXPECT_EQ(damage[0].path, file.path);
  object.back() ^= std::byte{1};
  ok(write_file_durably(backup.disk, path, object));
  ASSERT_EQ(verify(manifest).size(), 1U);
}

}  // namespace
}  // namespace verger::backup
