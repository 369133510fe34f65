// Servers that are busy, refuse, cut connections, lose answers, send damaged ones.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "engine/backup/generation_files.h"
#include "engine/backup/verify_job.h"
#include "engine/base/unique_fd.h"
#include "tests/unit/engine_object_store/store_case.h"

namespace verger::object_store {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Kind = S3Fault::Kind;

class S3Faults : public StoreCase {
 protected:
  static bool any(const S3Call& /*call*/) { return true; }
  static bool is_complete(const S3Call& call) {
    return call.method == "POST" && call.asks_for("uploadId");
  }
  static bool is_copy(const S3Call& call) { return call.headers.contains("x-amz-copy-source"); }
  void expect_long_content(const Result<Sha256Digest>& stored) {
    ASSERT_TRUE(stored) << stored.error().message;
    EXPECT_THAT(server.objects(), ElementsAre(std::pair(blob_key(*stored), kLongContent)));
    EXPECT_EQ(server.unfinished_uploads(), 0U);
  }
};

TEST_F(S3Faults, WaitsLongerEachTimeWhileTheServerIsBusy) {
  fail({.status = 503}, any, 5);
  ok(store().put("repository", as_bytes("mark")));
  ASSERT_THAT(waits, SizeIs(5));
  auto longest = settings.retry.first_wait;
  for (const auto wait : waits) {
    EXPECT_GE(wait, longest / 2);
    EXPECT_LE(wait, longest);
    longest *= 2;
  }
}

TEST_F(S3Faults, WaitsAsLongAsTheServerAsksFor) {
  fail({.status = 503, .headers = {{"Retry-After", "3"}}}, any);
  ok(store().put("repository", as_bytes("mark")));
  EXPECT_THAT(waits, ElementsAre(milliseconds(3000)));
}

TEST_F(S3Faults, IsStoppedInTheMiddleOfAWait) {
  settings.retry.first_wait = milliseconds(10'000);
  settings.retry.stopped = [this] { return waits.size() >= 3; };
  fail({.status = 503}, any, 1000);
  const auto stored = store().put("repository", as_bytes("mark"));
  EXPECT_EQ(stored.error().code, Errc::kCancelled);
  EXPECT_THAT(waits, ElementsAre(milliseconds(100), milliseconds(100), milliseconds(100)));
  EXPECT_EQ(server.calls().size(), 1U);
  EXPECT_TRUE(backup::is_store_away(stored.error().code)) << "no damage of a backup";
}

TEST_F(S3Faults, GivesUpWithTheLastReason) {
  fail({.status = 503}, any, 1000);
  const auto stored = store().put("repository", as_bytes("mark"));
  EXPECT_EQ(stored.error().code, Errc::kUnavailable);
  EXPECT_THAT(stored.error().message, HasSubstr("s3://bucket/orders/repository"));
  EXPECT_THAT(stored.error().message, HasSubstr("SlowDown"));
  EXPECT_THAT(stored.error().message, HasSubstr("8 attempts"));
  EXPECT_EQ(server.calls().size(), 8U);
}

TEST_F(S3Faults, SaysWhatARefusalMeansAndDoesNotRepeatIt) {
  fail({.status = 403, .code = "SignatureDoesNotMatch"}, any, 1000);
  const auto stored = store().put("repository", as_bytes("mark"));
  EXPECT_EQ(stored.error().code, Errc::kUnauthorized);
  EXPECT_THAT(stored.error().message, HasSubstr("SignatureDoesNotMatch"));
  EXPECT_THAT(stored.error().message, HasSubstr("check the credentials"));
  EXPECT_THAT(stored.error().message, Not(HasSubstr("secret")));
  EXPECT_EQ(store().blob_size({}).error().code, Errc::kUnauthorized);
  EXPECT_EQ(server.calls().size(), 2U);
}

TEST_F(S3Faults, SaysThatTheKeyIsWrong) {
  settings.credentials.secret_key = "other";
  const auto stored = store().put("repository", as_bytes("mark"));
  EXPECT_EQ(stored.error().code, Errc::kUnauthorized);
  EXPECT_THAT(stored.error().message, HasSubstr("SignatureDoesNotMatch"));
}

TEST_F(S3Faults, SaysThatTheBucketIsNotThere) {
  fail({.status = 404, .code = "NoSuchBucket"}, any, 1000);
  EXPECT_EQ(store().get("repository").error().code, Errc::kInvalidArgument);
  EXPECT_THAT(store().list("generations").error().message, HasSubstr("no bucket \"bucket\""));
}

TEST_F(S3Faults, SaysInWhichRegionTheBucketIs) {
  fail({.status = 301,
        .code = "PermanentRedirect",
        .headers = {{"x-amz-bucket-region", "eu-west-1"}}},
       any, 1000);
  const auto got = store().get("repository");
  EXPECT_EQ(got.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(got.error().message, HasSubstr("it is in \"eu-west-1\""));
}

TEST_F(S3Faults, SaysThatTheStorageIsFull) {
  fail({.status = 507, .code = "XMinioStorageFull"}, any);
  EXPECT_EQ(store().put("repository", {}).error().code, Errc::kNoSpace);
}

TEST_F(S3Faults, RepeatsWhatIsCutAtAnyPoint) {
  for (const auto kind : {Kind::kCut, Kind::kLostAnswer}) {
    for (int which = 0;; ++which) {
      SCOPED_TRACE(which);
      int call = 0;
      server.on_call([&](const S3Call&) {
        return call++ == which ? std::optional(S3Fault{.kind = kind}) : std::nullopt;
      });
      const auto digest = value(store_blob(kLongContent));
      ASSERT_THAT(server.objects(), ElementsAre(std::pair(blob_key(digest), kLongContent)));
      ASSERT_EQ(value(read_blob(digest)), kLongContent);
      ok(store().remove_blob(digest));
      // An upload may have been begun without its answer: a leftover.
      value(store().remove_leftovers());
      ASSERT_EQ(server.unfinished_uploads(), 0U);
      if (call <= which) {
        break;
      }
    }
  }
}

TEST_F(S3Faults, LooksWhetherAnUploadIsCompleteWhenItsAnswerIsLost) {
  fail({.kind = Kind::kLostAnswer}, is_complete);
  expect_long_content(store_blob(kLongContent));
  EXPECT_GE(calls_with("HEAD orders/tmp/"), 1U);
}

TEST_F(S3Faults, CompletesAnUploadAgainThatWasNotCompleted) {
  fail({.kind = Kind::kCut}, is_complete);
  expect_long_content(store_blob(kLongContent));
}

TEST_F(S3Faults, SeesAnErrorBehindAStatusOfSuccess) {
  fail({.status = 200, .code = "InternalError"}, is_complete);
  expect_long_content(store_blob(kLongContent));
  EXPECT_THAT(waits, SizeIs(1));
  fail({.status = 200, .code = "InternalError"}, is_copy);
  expect_long_content(store_blob(kLongContent));
  fail({.status = 200, .code = "AccessDenied"}, is_copy);
  EXPECT_FALSE(store_blob(kLongContent));
}

TEST_F(S3Faults, LeavesNothingWhereContentCannotBeStored) {
  for (const auto& which : {is_complete, is_copy}) {
    fail({.status = 403, .code = "AccessDenied"}, which, 1000);
    EXPECT_EQ(store_blob(kLongContent).error().code, Errc::kUnauthorized);
    EXPECT_EQ(server.unfinished_uploads(), 0U);
    EXPECT_THAT(server.objects(), IsEmpty());
  }
  settings.copy_size = 50;
}

TEST_F(S3Faults, AbortsACopyInPartsThatFails) {
  settings.copy_size = 50;
  fail({.status = 403, .code = "AccessDenied"}, is_copy, 1000);
  EXPECT_EQ(store_blob(kLongContent).error().code, Errc::kUnauthorized);
  EXPECT_EQ(server.unfinished_uploads(), 0U);
  EXPECT_THAT(server.objects(), IsEmpty());
}

TEST_F(S3Faults, SendsAPartAgainThatArrivedDamaged) {
  fail({.status = 400, .code = "XAmzContentSHA256Mismatch"},
       [](const S3Call& call) { return call.asks_for("partNumber"); });
  expect_long_content(store_blob(kLongContent));
}

TEST_F(S3Faults, ReadsTheRestOfWhatIsCut) {
  settings.part_size = 1U << 20U;
  const std::string content(100'000, 'x');
  const auto digest = value(store_blob(content));
  std::vector<std::string> ranges;
  server.on_call([&](const S3Call& call) {
    if (call.headers.contains("range")) {
      ranges.push_back(call.headers.at("range"));
    }
    return ranges.size() == 1 ? std::optional(S3Fault{.kind = Kind::kCutBody}) : std::nullopt;
  });
  EXPECT_EQ(value(read_blob(digest)), content);
  EXPECT_THAT(ranges, ElementsAre("bytes=0-99999", "bytes=50000-99999"));
}

TEST_F(S3Faults, ReadsADamagedDocumentAgain) {
  ok(store().put("folder/document", as_bytes("what it says")));
  const auto is_get = [](const S3Call& call) { return call.method == "GET"; };
  fail({.kind = Kind::kDamagedBody}, is_get);
  EXPECT_EQ(as_text(value(store().get("folder/document"))), "what it says");
  fail({.kind = Kind::kDamagedBody}, is_get, 1000);
  EXPECT_EQ(store().get("folder/document").error().code, Errc::kCorruption);
}

TEST_F(S3Faults, DoesNotWaitForeverForAnAnswer) {
  settings.answer_timeout = milliseconds(50);
  fail({.kind = Kind::kSilence}, any);
  ok(store().put("repository", as_bytes("mark")));
  EXPECT_THAT(waits, Not(IsEmpty()));
}

TEST_F(S3Faults, SaysThatNoServerIsThere) {
  // A port that is taken, and that nothing listens on.
  const UniqueFd taken(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any_address = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(taken.get(), any_address, size), 0);
  ASSERT_EQ(::getsockname(taken.get(), any_address, &size), 0);
  settings.endpoint = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
  const auto got = store().get("repository");
  EXPECT_EQ(got.error().code, Errc::kUnavailable);
  EXPECT_THAT(got.error().message, HasSubstr(settings.endpoint));
  EXPECT_THAT(waits, SizeIs(7));
}

TEST_F(S3Faults, SaysThatTheFileOfRootsIsNotThere) {
  settings.endpoint = "https://127.0.0.1:" + server.port();
  settings.ca_file = "/nowhere/ca.pem";
  const auto got = store().get("repository");
  EXPECT_EQ(got.error().code, Errc::kIo);
  EXPECT_THAT(got.error().message, HasSubstr("/nowhere/ca.pem"));
  EXPECT_THAT(waits, IsEmpty());
}

TEST_F(S3Faults, AreNoDamageOfABackup) {
  const auto digest = value(store_blob("content"));
  backup::Manifest manifest;
  auto& file = manifest.files.emplace_back();
  file.path = "chunk-000000.000000";
  file.size = 7;
  file.restored_size = 7;
  file.sha256 = digest;
  fail({.status = 503}, [](const S3Call& call) { return call.headers.contains("range"); }, 1000);
  backup::VerifyBytesJob away(store(), manifest);
  const auto step = away.step({});
  ASSERT_FALSE(step);
  EXPECT_EQ(step.error().code, Errc::kUnavailable);
  backup::GenerationFiles files(posix_file_system(), store(), manifest);
  const auto opened = value(files.open(files.root() / "chunk-000000.000000", OpenMode::kRead));
  EXPECT_EQ(files.store_problem(), std::nullopt);
  Bytes into(7);
  EXPECT_FALSE(opened->read_exact(0, into));
  EXPECT_EQ(files.store_problem().value().code, Errc::kUnavailable);
  server.on_call({});
  backup::VerifyBytesJob back(store(), manifest);
  EXPECT_EQ(value(back.step({})).kind, StepOutcome::Kind::kDone);
  EXPECT_THAT(back.damage(), IsEmpty());
  server.put_object(blob_key(digest), "cOntent");
  backup::VerifyBytesJob damaged(store(), manifest);
  EXPECT_EQ(value(damaged.step({})).kind, StepOutcome::Kind::kDone);
  EXPECT_THAT(damaged.damage(), SizeIs(1));
}

TEST_F(S3Faults, RefusesAServerWithoutRanges) {
  const auto digest = value(store_blob("content"));
  fail(
      {.status = 200, .code = ""},
      [](const S3Call& call) { return call.headers.contains("range"); }, 1000);
  EXPECT_EQ(read_blob(digest).error().code, Errc::kUnsupported);
}

TEST_F(S3Faults, RefusesAListThatIsNone) {
  fail({.status = 200, .code = ""}, any, 1000);
  EXPECT_EQ(store().list_blobs().error().code, Errc::kCorruption);
}

}  // namespace
}  // namespace verger::object_store
