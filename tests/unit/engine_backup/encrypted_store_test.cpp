// Encrypted objects: segments that were exchanged, what shows nothing, and keys.
#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/backup/detail/sealed_reader.h"
#include "engine/backup/detail/sealed_writer.h"
#include "engine/backup/sealed_store.h"
#include "tests/unit/engine_backup/backup_case.h"
#include "tests/unit/engine_backup/sealed_case.h"

namespace verger::backup {
namespace {

using ::testing::HasSubstr;

/// Segments of one size, so that their places are known.
class EncryptedSegments : public ::testing::Test {
 protected:
  EncryptedSegments() {
    digest = value(store_content(*store, some_content(3 * kSegment, 8)));
    path = object_path(*store, digest);
    object = value(read_file(disk, path));
  }
  MutableBytes segment(std::size_t number) {
    return MutableBytes(object).subspan(detail::kSealedHeaderSize + number * kStored, kStored);
  }
  Errc read_changed() {
    ok(write_file_durably(disk, path, object));
    const auto read = read_content(*store, digest);
    EXPECT_FALSE(read);
    return read ? Errc::kIo : read.error().code;
  }

  static constexpr std::size_t kStored = kSegment + detail::kSealedTagSize;
  MemoryFileSystem disk;
  SeededRandom random{9};
  std::unique_ptr<SealedStore> store =
      sealed_store(disk, random, Compression::kNone, KeyRing::make(random));
  Sha256Digest digest{};
  Path path;
  Bytes object;
};

TEST_F(EncryptedSegments, ThatChangedPlacesAreRefused) {
  std::ranges::swap_ranges(segment(0), segment(1));
  EXPECT_EQ(read_changed(), Errc::kCorruption);
}

TEST_F(EncryptedSegments, ThatStandTwiceAreRefused) {
  std::ranges::copy(segment(0), segment(1).begin());
  EXPECT_EQ(read_changed(), Errc::kCorruption);
}

TEST_F(EncryptedSegments, TheLastOneIsNoOther) {
  std::ranges::copy(segment(2), segment(1).begin());
  EXPECT_EQ(read_changed(), Errc::kCorruption);
}

TEST_F(EncryptedSegments, OneThatIsMissingIsSeen) {
  const auto gone = segment(1);
  object.erase(
      object.begin() + (gone.data() - object.data()),
      object.begin() + (gone.data() - object.data()) + static_cast<std::ptrdiff_t>(gone.size()));
  EXPECT_EQ(read_changed(), Errc::kCorruption);
}

TEST_F(EncryptedSegments, OfAnotherObjectAreRefused) {
  const auto other = value(store_content(*store, some_content(3 * kSegment, 10)));
  auto second = value(read_file(disk, object_path(*store, other)));
  std::ranges::copy(MutableBytes(second).subspan(detail::kSealedHeaderSize, kStored),
                    segment(0).begin());
  EXPECT_EQ(read_changed(), Errc::kCorruption);
}

class Encrypted : public ::testing::Test {
 protected:
  std::unique_ptr<SealedStore> open(std::optional<KeyRing> with) {
    return sealed_store(disk, random, Compression::kNone, std::move(with));
  }
  KeyRing parsed(const std::string& id, char digit, char names = '7') {
    return value(KeyRing::parse(
        fmt::format("{} {}\nnames {}\n", id, std::string(64, digit), std::string(64, names))));
  }

  MemoryFileSystem disk;
  SeededRandom random{11};
  KeyRing keys = parsed("key-a", '1');
};

TEST_F(Encrypted, ShowsNothingOfContentNorWhichItIs) {
  const auto store = open(keys);
  const auto text = std::string(500, 'x');
  const auto digest = value(store_content(*store, as_bytes(text)));
  EXPECT_NE(store->stored_name(digest), digest);
  ASSERT_EQ(value(store->list_blobs()).size(), 1U);
  EXPECT_EQ(value(store->list_blobs())[0].name, store->stored_name(digest));
  const auto object = value(read_file(disk, object_path(*store, digest)));
  EXPECT_EQ(as_text(object).find("xxxx"), std::string_view::npos);
  ok(store->put("generations/one", as_bytes(text)));
  const auto document = value(read_file(disk, "/store/generations/one"));
  EXPECT_EQ(as_text(document).find("xxxx"), std::string_view::npos);
  // The same content twice: other bytes.
  value(store_content(*store, as_bytes(text)));
  EXPECT_NE(value(read_file(disk, object_path(*store, digest))), object);
  ok(store->remove_blob(store->stored_name(digest)));
  EXPECT_EQ(store->open_blob(digest).error().code, Errc::kNotFound);
}

TEST_F(Encrypted, FindsEveryChangedByteOfADocument) {
  const auto store = open(keys);
  ok(store->put("generations/one", as_bytes("a manifest")));
  auto object = value(read_file(disk, "/store/generations/one"));
  for (auto& byte : object) {
    byte ^= std::byte{4};
    ok(write_file_durably(disk, "/store/generations/one", object));
    EXPECT_FALSE(store->get("generations/one"));
    byte ^= std::byte{4};
  }
  ok(write_file_durably(disk, "/store/generations/one", object));
  EXPECT_EQ(as_text(value(store->get("generations/one"))), "a manifest");
  ok(disk.rename("/store/generations/one", "/store/generations/two"));
  EXPECT_EQ(store->get("generations/two").error().code, Errc::kCorruption);
}

TEST_F(Encrypted, NamesTheKeyThatIsMissingOrWrong) {
  ok(open(keys)->put("repository", as_bytes("mark")));
  const auto refused = [&](std::optional<KeyRing> with) {
    const auto got = open(std::move(with))->get("repository");
    EXPECT_FALSE(got);
    return got ? Error{Errc::kIo, {}} : got.error();
  };
  const auto none = refused(std::nullopt);
  EXPECT_EQ(none.code, Errc::kUnauthorized);
  EXPECT_THAT(none.message, HasSubstr("\"key-a\""));
  EXPECT_THAT(none.message, HasSubstr("keyFile"));
  const auto other = refused(parsed("key-b", '1'));
  EXPECT_EQ(other.code, Errc::kUnauthorized);
  EXPECT_THAT(other.message, HasSubstr("\"key-a\", which the key file does not hold"));
  const auto wrong = refused(parsed("key-a", '2'));
  EXPECT_EQ(wrong.code, Errc::kUnauthorized);
  EXPECT_THAT(wrong.message, HasSubstr("another key \"key-a\""));
  const auto names = refused(parsed("key-a", '1', '8'));
  EXPECT_EQ(names.code, Errc::kUnauthorized);
  EXPECT_THAT(names.message, HasSubstr("another key \"names\""));
}

TEST_F(Encrypted, TakesNothingThatIsNotEncrypted) {
  const auto plain = open(std::nullopt);
  ok(plain->put("repository", as_bytes("mark")));
  const auto digest = value(store_content(*plain, as_bytes("content")));
  const auto store = open(keys);
  EXPECT_THAT(store->get("repository").error().message, HasSubstr("is not encrypted"));
  // Put in the place of an encrypted object, compressed or as it is.
  const auto path = object_path(*store, digest);
  for (const auto compression : {Compression::kNone, Compression::kZstd}) {
    const auto weaker = sealed_store(disk, random, compression, std::nullopt);
    value(store_content(*weaker, as_bytes("content")));
    ok(disk.make_directories(path.parent_path()));
    ok(disk.rename(object_path(*weaker, digest), path));
    EXPECT_THAT(store->open_blob(digest).error().message, HasSubstr("is not encrypted"));
  }
}

TEST_F(Encrypted, ReadsWithAnOldKeyAndWritesWithTheFirst) {
  const auto old_store = open(keys);
  const auto digest = value(store_content(*old_store, as_bytes("old")));
  auto both = keys;
  both.add_key(random);
  const auto store = open(both);
  EXPECT_EQ(value(read_content(*store, digest)), bytes_of("old"));
  EXPECT_EQ(store->stored_name(digest), old_store->stored_name(digest));
  const auto fresh = value(store_content(*store, as_bytes("new")));
  EXPECT_EQ(value(store->key_of_blob(store->stored_name(digest))), "key-a");
  EXPECT_EQ(value(store->key_of_blob(store->stored_name(fresh))), both.writing().id);
  EXPECT_EQ(read_content(*old_store, fresh).error().code, Errc::kUnauthorized);
}

/// Every size around the bounds of small segments, changed in every byte; and so many segments that
/// their index is read on its own.

}  // namespace
}  // namespace verger::backup
