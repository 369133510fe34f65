// The check of signatures that the tests' server makes, against the examples of AWS.
#include "tests/support/object_store/signature.h"

#include <gtest/gtest.h>

namespace verger::test {
namespace {

constexpr const char* kSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
constexpr const char* kNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kScope =
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,";

TEST(Signature, OfAnObjectsPartIsThatOfTheDocumentation) {
  const S3Call call{
      .method = "GET",
      .path = "/test.txt",
      .headers = {{"host", "examplebucket.s3.amazonaws.com"},
                  {"range", "bytes=0-9"},
                  {"x-amz-content-sha256", kNothing},
                  {"x-amz-date", "20130524T000000Z"},
                  {"authorization",
                   std::string(kScope) +
                       "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=x"}}};
  EXPECT_EQ(expected_signature(call, kSecret),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(Signature, OfAListIsThatOfTheDocumentation) {
  const S3Call call{
      .method = "GET",
      .path = "/",
      .query = {{"prefix", "J"}, {"max-keys", "2"}},
      .headers = {
          {"host", "examplebucket.s3.amazonaws.com"},
          {"x-amz-content-sha256", kNothing},
          {"x-amz-date", "20130524T000000Z"},
          {"authorization", std::string(kScope) +
                                "SignedHeaders=host;x-amz-content-sha256;x-amz-date,Signature=x"}}};
  EXPECT_EQ(expected_signature(call, kSecret),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

}  // namespace
}  // namespace verger::test
