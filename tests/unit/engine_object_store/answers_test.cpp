// The XML of servers, also of those that send something else.
#include "engine/object_store/detail/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/random.h"
#include "tests/support/results.h"

namespace verger::object_store::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kList =
    "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/\">"
    "<Name>b</Name><IsTruncated>true</IsTruncated><Contents><Key>a&amp;&lt;&gt;&quot;&apos;</Key>"
    "<Size>12</Size></Contents><Contents>\n <Key>b</Key><Size>0</Size></Contents>"
    "<NextContinuationToken>1/+=</NextContinuationToken></ListBucketResult>";
constexpr std::string_view kUploads =
    "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>"
    "<NextUploadIdMarker>i</NextUploadIdMarker><Upload><Key>k</Key><UploadId>i</UploadId></Upload>"
    "</ListMultipartUploadsResult>";

TEST(S3Answers, AreElementsByName) {
  EXPECT_THAT(xml_elements("<A>1</A><B/><A x=\"y\">2</A><AB>3</AB><A/>", "A"),
              ElementsAre("1", "2", ""));
  EXPECT_THAT(xml_elements("<A>1", "A"), IsEmpty());
  EXPECT_THAT(xml_elements("<A", "A"), IsEmpty());
  EXPECT_EQ(xml_text("<A>&amp;lt;</A>", "A"), "&lt;");
  EXPECT_EQ(xml_text("<A>" + xml_escaped("<\"&'>") + "</A>", "A"), "<\"&'>");
}

TEST(S3Answers, SayWhatFailed) {
  const auto error = server_error_of("<Error><Code>SlowDown</Code><Message>wait</Message></Error>");
  EXPECT_EQ(error.code, "SlowDown");
  EXPECT_EQ(error.message, "wait");
  EXPECT_EQ(server_error_of("<html>502</html>").code, "");
}

TEST(S3Answers, ArePagesOfObjects) {
  const auto page = value(list_page_of(kList));
  ASSERT_EQ(page.objects.size(), 2U);
  EXPECT_EQ(page.objects[0].key, "a&<>\"'");
  EXPECT_EQ(page.objects[0].size, 12U);
  EXPECT_EQ(page.next, "1/+=");
  EXPECT_FALSE(list_page_of("<html/>"));
  EXPECT_FALSE(
      list_page_of("<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>"));
  EXPECT_FALSE(
      list_page_of("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"));
}

TEST(S3Answers, ArePagesOfUploads) {
  const auto page = value(upload_page_of(kUploads));
  ASSERT_EQ(page.uploads.size(), 1U);
  EXPECT_EQ(page.uploads[0].id, "i");
  ASSERT_TRUE(page.next);
  EXPECT_EQ(page.next->key, "k");
  EXPECT_FALSE(upload_page_of("<html/>"));
  EXPECT_FALSE(
      upload_page_of("<ListMultipartUploadsResult><Upload></Upload>"
                     "</ListMultipartUploadsResult>"));
}

TEST(S3Answers, OfAnyBytesAreReadOrRefused) {
  SeededRandom random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(i % 2 == 0 ? kList : kUploads);
    for (int changes = 0; changes < 4; ++changes) {
      text[random.below(text.size())] = static_cast<char>("<>/&;AE "[random.below(8)]);
    }
    text.resize(random.below(text.size() + 1));
    static_cast<void>(list_page_of(text).has_value());
    static_cast<void>(upload_page_of(text).has_value());
    static_cast<void>(server_error_of(text));
  }
}

}  // namespace
}  // namespace verger::object_store::detail
