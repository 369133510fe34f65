#include "nodeagent/http/compress.h"

#include <gtest/gtest.h>

#include <boost/beast/zlib/inflate_stream.hpp>

namespace verger::http {
namespace {

std::string inflated(std::string_view packed, std::size_t size) {
  boost::beast::zlib::inflate_stream stream;
  std::string out(size, '\0');
  boost::beast::zlib::z_params work;
  work.next_in = packed.data();
  work.avail_in = packed.size();
  work.next_out = out.data();
  work.avail_out = out.size();
  boost::system::error_code error;
  stream.write(work, boost::beast::zlib::Flush::finish, error);
  EXPECT_EQ(error, boost::beast::zlib::error::end_of_stream) << error.message();
  return out;
}

TEST(Compress, ComesBackAsItWas) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) {
    text += std::to_string(i * i) + (i % 7 == 0 ? "\n" : "");
  }
  const std::string_view whole = text;
  for (const auto each : {whole.substr(0, 1), whole.substr(0, 1000), whole}) {
    const auto bare = compressed(each, ContentEncoding::kDeflate);
    EXPECT_EQ(inflated(bare, each.size()), each);
    const auto gzip = compressed(each, ContentEncoding::kGzip);
    EXPECT_EQ(gzip.substr(0, 3), "\x1f\x8b\x08");
    EXPECT_EQ(gzip.substr(10, bare.size()), bare);
  }
  EXPECT_EQ(compressed("", ContentEncoding::kGzip), "");
}

TEST(Compress, EndsWithTheSumAndTheSize) {
  const auto gzip = compressed("123456789", ContentEncoding::kGzip);
  EXPECT_EQ(gzip.substr(gzip.size() - 8), std::string("\x26\x39\xf4\xcb\x09\0\0\0", 8));
}

}  // namespace
}  // namespace verger::http
