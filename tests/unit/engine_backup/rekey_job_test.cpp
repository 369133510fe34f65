// Key files, and moving a repository to another key.
#include "engine/backup/rekey_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/engine_backup/backup_case.h"
#include "tests/unit/engine_backup/sealed_case.h"

namespace verger::backup {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(KeyFile, ReadsWhatItWrites) {
  SeededRandom random(1);
  auto ring = KeyRing::make(random);
  ring.add_key(random);
  const auto read = value(KeyRing::parse(ring.to_text()));
  EXPECT_EQ(read.to_text(), ring.to_text());
  ASSERT_EQ(read.keys().size(), 2U);
  EXPECT_EQ(read.writing().id, ring.writing().id);
  EXPECT_EQ(read.name_key(), ring.name_key());
  EXPECT_NE(read.keys()[0].key, read.keys()[1].key);
  EXPECT_EQ(read.find("nothing"), nullptr);
}

TEST(KeyFile, RefusesLinesThatAreNoneAndShowsNoKey) {
  const std::string key(64, 'a');
  const std::string names = "names " + key + "\n";
  for (const auto& text :
       {std::string(), names, "one " + key + "\n", "one  " + key + "\n" + names,
        "One " + key + "\n" + names, "one " + key.substr(1) + "\n" + names,
        "one " + key + " \n" + names, key + "\n" + names, std::string(33, 'o') + " " + key + names,
        "one " + key + "\none " + key + "\n" + names, "one " + key + "\n" + names + names}) {
    const auto parsed = KeyRing::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(parsed.error().message, ::testing::Not(HasSubstr("aaaa")));
  }
  MemoryFileSystem disk;
  ok(write_file_durably(disk, "/keys", as_bytes("\n\nnonsense\n")));
  EXPECT_THAT(read_key_file(disk, "/keys").error().message, HasSubstr("/keys: line 3"));
  EXPECT_EQ(read_key_file(disk, "/none").error().code, Errc::kNotFound);
}

class Rekey : public ::testing::Test {
 protected:
  Rekey() {
    new_keys.add_key(random);
    const auto store = open(disk, old_keys);
    auto repository = value(Repository::open(*store, Repository::Create::kIfMissing, random));
    const auto big = some_content(1'200'000, 2);
    Manifest manifest;
    manifest.id = kGeneration;
    manifest.positions.chunk_size = 4096;
    for (const auto& content : {bytes_of("small"), big, Bytes()}) {
      const auto digest = value(store_content(*store, content));
      manifest.files.push_back({.path = fmt::format("file-{}", manifest.files.size()),
                                .size = content.size(),
                                .restored_size = content.size(),
                                .sha256 = digest,
                                .identity = {}});
    }
    ok(store->put("sessions/" + manifest.id, as_bytes("x")));
    ok(repository.save(manifest));
    ok(repository.add_check(manifest.id, {.by = "test", .summary = "sound"}));
  }

  std::unique_ptr<SealedStore> open(FileSystem& files, const KeyRing& keys) {
    return sealed_store(files, random, Compression::kZstd, keys);
  }
  /// The key file once the old key has been taken out of it.
  [[nodiscard]] KeyRing only_new() const {
    auto text = new_keys.to_text();
    const auto line = text.find(old_keys.writing().id);
    return value(KeyRing::parse(text.erase(line, text.find('\n', line) + 1 - line)));
  }
  Result<RekeyJob::Progress> rekey(MemoryFileSystem& files) {
    const auto store = open(files, new_keys);
    VERGER_TRY(auto repository, Repository::open(*store, Repository::Create::kNo));
    RekeyJob job(*store, repository, clock, random);
    VERGER_RETURN_IF_ERROR(run_to_end(job));
    return job.progress();
  }
  void expect_readable(FileSystem& files, const KeyRing& keys) {
    const auto store = open(files, keys);
    const auto repository = value(Repository::open(*store, Repository::Create::kNo));
    const auto manifest = value(repository.load(kGeneration));
    VerifyBytesJob job(*store, manifest);
    ok(run_to_end(job));
    EXPECT_THAT(job.damage(), IsEmpty());
    EXPECT_EQ(value(repository.checks(kGeneration)).size(), 1U);
  }

  static constexpr auto kGeneration = "20240101t000000z-00000001";
  MemoryFileSystem disk;
  SeededRandom random{3};
  test::ManualClock clock;
  KeyRing old_keys = KeyRing::make(random);
  KeyRing new_keys = old_keys;
};

TEST_F(Rekey, MovesEverythingToTheFirstKey) {
  const auto done = value(rekey(disk));
  EXPECT_EQ(done.rewritten, 6U);  // three blobs, manifest, check, marker
  EXPECT_EQ(done.objects, done.total);
  expect_readable(disk, only_new());
  EXPECT_EQ(value(rekey(disk)).rewritten, 0U);
  const auto store = open(disk, only_new());
  EXPECT_THAT(value(store->list("sessions")), IsEmpty());
  EXPECT_EQ(Repository::open(*open(disk, old_keys), Repository::Create::kNo).error().code,
            Errc::kUnauthorized);
}

TEST_F(Rekey, LeavesAllReadableAndContinuesWhereverThePowerGoes) {
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    const auto copy = disk.clone();
    copy->reset_count();
    copy->set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
      if (operation.number != nth) {
        return std::nullopt;
      }
      copy->cut_power(nth);
      return Error{Errc::kIo, "the power went"};
    });
    const bool done = rekey(*copy).has_value();
    copy->set_fault_hook({});
    expect_readable(*copy, new_keys);
    value(rekey(*copy));
    expect_readable(*copy, only_new());
    if (done) {
      break;
    }
  }
}

TEST_F(Rekey, LeavesADamagedObjectAsItIs) {
  const auto store = open(disk, new_keys);
  const auto path = object_path(*store, sha256(as_bytes("small")));
  auto object = value(read_file(disk, path));
  object[object.size() - 60] ^= std::byte{1};
  ok(write_file_durably(disk, path, object));
  const auto refused = rekey(disk);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kCorruption);
  EXPECT_EQ(value(read_file(disk, path)), object);
}

TEST_F(Rekey, WaitsForADeletionAndHoldsOneOff) {
  const auto store = open(disk, new_keys);
  auto repository = value(Repository::open(*store, Repository::Create::kNo));
  ok(store->put("sweeping", as_bytes("x")));
  EXPECT_EQ(rekey(disk).error().code, Errc::kUnavailable);
  ok(store->remove("sweeping"));
  RekeyJob job(*store, repository, clock, random);
  value(job.step({}));
  const Ticks hour_ago(clock.now().value() - 3600 * kTicksPerSecond);
  EXPECT_EQ(repository.sweep(clock.now(), hour_ago).error().code, Errc::kUnavailable);
  ok(run_to_end(job));
  value(repository.sweep(hour_ago, hour_ago));
  expect_readable(disk, only_new());
}

}  // namespace
}  // namespace verger::backup
