// Content and documents in a bucket, of a server that works.
#include "engine/object_store/s3_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/backup/repository.h"
#include "tests/unit/engine_object_store/store_case.h"

namespace verger::object_store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class S3StoreTest : public StoreCase {};

TEST_F(S3StoreTest, StoresContentOfOnePartUnderItsDigest) {
  const auto digest = value(store_blob("content"));
  EXPECT_THAT(server.objects(), ElementsAre(std::pair(blob_key(digest), std::string("content"))));
  EXPECT_EQ(value(store().blob_size(digest)), 7U);
  EXPECT_EQ(value(read_blob(digest)), "content");
  EXPECT_EQ(server.calls().front(), "PUT " + blob_key(digest));
}

TEST_F(S3StoreTest, StoresContentOfManyPartsUnderItsDigest) {
  const auto digest = value(store_blob(kLongContent));
  EXPECT_THAT(server.objects(), ElementsAre(std::pair(blob_key(digest), kLongContent)));
  EXPECT_EQ(calls_with("partNumber="), (kLongContent.size() + 31) / 32);
  EXPECT_EQ(value(store().blob_size(digest)), kLongContent.size());
  EXPECT_EQ(value(read_blob(digest)), kLongContent);
  EXPECT_EQ(server.unfinished_uploads(), 0U);
}

TEST_F(S3StoreTest, StoresContentThatEndsWithAPart) {
  const std::string content(96, 'x');
  EXPECT_EQ(value(read_blob(value(store_blob(content)))), content);
  EXPECT_EQ(calls_with("partNumber="), 3U);
  const std::string one(32, 'y');
  EXPECT_EQ(value(read_blob(value(store_blob(one)))), one);
  EXPECT_EQ(value(read_blob(value(store_blob("")))), "");
}

TEST_F(S3StoreTest, CopiesLargeContentInParts) {
  settings.copy_size = 50;
  const auto digest = value(store_blob(kLongContent));
  EXPECT_THAT(server.objects(), ElementsAre(std::pair(blob_key(digest), kLongContent)));
  EXPECT_EQ(server.unfinished_uploads(), 0U);
}

TEST_F(S3StoreTest, ShowsNothingOfContentBeforeItIsCommitted) {
  const auto digest = sha256(as_bytes(kLongContent));
  {
    const auto writer = value(store().create_blob());
    ok(writer->append(as_bytes(kLongContent)));
    EXPECT_EQ(value(store().blob_size(digest)), std::nullopt);
    EXPECT_EQ(server.unfinished_uploads(), 1U);
  }
  EXPECT_EQ(server.unfinished_uploads(), 0U) << "it was abandoned";
  EXPECT_THAT(server.objects(), IsEmpty());
  EXPECT_EQ(store().open_blob(digest).error().code, Errc::kNotFound);
}

TEST_F(S3StoreTest, ReplacesDamagedContentThatIsStoredAgain) {
  const auto digest = value(store_blob("content"));
  server.put_object(blob_key(digest), "damaged");
  value(store_blob("content"));
  EXPECT_EQ(server.objects().at(blob_key(digest)), "content");
}

TEST_F(S3StoreTest, ListsAllPagesOfContentAndRemovesIt) {
  server.page_size(2);
  std::vector<Sha256Digest> digests;
  for (const auto* content : {"a", "bb", "ccc", "dddd", "eeeee"}) {
    digests.push_back(value(store_blob(content)));
  }
  server.put_object("orders/blobs/zz/other", "no content of ours");
  server.put_object("other/blobs/aa/x", "another prefix");
  auto blobs = value(store().list_blobs());
  EXPECT_EQ(blobs.size(), 5U);
  std::uint64_t bytes = 0;
  for (const auto& blob : blobs) {
    bytes += blob.size;
    EXPECT_THAT(digests, ::testing::Contains(blob.name));
  }
  EXPECT_EQ(bytes, 15U);
  ok(store().remove_blob(digests[0]));
  ok(store().remove_blob(digests[0]));
  EXPECT_EQ(value(store().list_blobs()).size(), 4U);
}

TEST_F(S3StoreTest, KeepsDocumentsInFolders) {
  EXPECT_THAT(value(store().list("folder")), IsEmpty());
  EXPECT_EQ(store().get("folder/a").error().code, Errc::kNotFound);
  ok(store().put("folder/b", as_bytes("2")));
  ok(store().put("folder/a", as_bytes("1")));
  ok(store().put("folder/a", as_bytes("3 <Error><Code>of a document</Code></Error>")));
  ok(store().put("repository", as_bytes("mark")));
  server.put_object("orders/folder/", "as some tools make directories");
  server.put_object("orders/folder/deeper/x", "");
  server.page_size(1);
  EXPECT_THAT(value(store().list("folder")), ElementsAre("a", "b"));
  EXPECT_EQ(as_text(value(store().get("folder/a"))), "3 <Error><Code>of a document</Code></Error>");
  ok(store().remove("folder/a"));
  ok(store().remove("folder/a"));
  EXPECT_EQ(store().get("folder/a").error().code, Errc::kNotFound);
  EXPECT_EQ(as_text(value(store().get("repository"))), "mark");
}

TEST_F(S3StoreTest, RemovesWhatKilledWritersLeft) {
  server.page_size(1);
  server.begin_upload("orders/tmp/one");
  server.begin_upload("orders/tmp/two");
  server.begin_upload("orders/blobs/aa/copied-in-parts");
  server.begin_upload("other/tmp/of-another-repository");
  server.put_object("orders/tmp/three", "12345");
  EXPECT_EQ(value(store().remove_leftovers()), 5U);
  EXPECT_EQ(server.unfinished_uploads(), 1U);
  EXPECT_THAT(server.objects(), IsEmpty());
  EXPECT_EQ(value(store().remove_leftovers()), 0U);
}

TEST_F(S3StoreTest, RemovesObjectsWhereTheServerListsNoUploads) {
  server.put_object("orders/tmp/three", "12345");
  fail({.status = 501, .code = "NotImplemented"},
       [](const S3Call& call) { return call.asks_for("uploads"); });
  EXPECT_EQ(value(store().remove_leftovers()), 5U);
}

TEST_F(S3StoreTest, NamesTheBucketInTheHostWhereItShould) {
  settings.endpoint = "http://localhost:" + server.port();
  settings.path_style = false;
  std::string host;
  server.on_call([&](const S3Call& call) {
    host = call.headers.at("host");
    return std::optional<S3Fault>();
  });
  const auto digest = value(store_blob("content"));
  EXPECT_EQ(value(read_blob(digest)), "content");
  EXPECT_EQ(value(store().list_blobs()).size(), 1U);
  EXPECT_EQ(host, "bucket.localhost:" + server.port());
}

TEST_F(S3StoreTest, SendsATokenOfTheSession) {
  settings.credentials.session_token = "token";
  std::string signed_headers;
  server.on_call([&](const S3Call& call) {
    signed_headers = call.headers.at("authorization");
    EXPECT_EQ(call.headers.at("x-amz-security-token"), "token");
    return std::optional<S3Fault>();
  });
  ok(store().put("repository", as_bytes("mark")));
  EXPECT_THAT(signed_headers, HasSubstr("x-amz-security-token"));
  EXPECT_THAT(signed_headers, HasSubstr("/us-east-1/s3/aws4_request"));
}

TEST_F(S3StoreTest, ReadsAheadWhereItIsReadFromFrontToBack) {
  settings.part_size = 1U << 20U;
  std::string content(600'000, '.');
  for (std::size_t i = 0; i < content.size(); ++i) {
    content[i] = static_cast<char>('a' + i * 7 % 23);
  }
  const auto digest = value(store_blob(content));
  const auto before = server.calls().size();
  EXPECT_EQ(value(read_blob(digest, 1'000)), content);
  EXPECT_LE(server.calls().size() - before, 7U) << "windows of 64, 128, 256, … KiB";
}

TEST_F(S3StoreTest, ReadsWithoutABudgetToo) {
  settings.part_size = 1U << 20U;
  settings.read_ahead_total = 0;
  const std::string content(10'000, 'x');
  EXPECT_EQ(value(read_blob(value(store_blob(content)), 1'000)), content);
}

TEST_F(S3StoreTest, SaysThatContentEndsBeforeWhatIsRead) {
  const auto digest = value(store_blob("content"));
  const auto reader = value(store().open_blob(digest));
  Bytes into(4);
  EXPECT_EQ(reader->read_exact(5, into).error().code, Errc::kCorruption);
  EXPECT_EQ(reader->read_exact(~0ULL, into).error().code, Errc::kCorruption);
  server.put_object(blob_key(digest), "con");
  EXPECT_EQ(reader->read_exact(3, into).error().code, Errc::kCorruption);
}

TEST_F(S3StoreTest, HoldsARepository) {
  auto repository =
      value(backup::Repository::open(store(), backup::Repository::Create::kIfMissing));
  value(backup::Repository::open(store(), backup::Repository::Create::kNo));
  EXPECT_THAT(value(repository.generations()), IsEmpty());
  EXPECT_EQ(store().name(), "s3://bucket/orders");
}

}  // namespace
}  // namespace verger::object_store
