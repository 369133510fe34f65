#include "nodeagent/http/compress.h"

#include <array>

#include <boost/beast/zlib/deflate_stream.hpp>

#include "engine/base/assert.h"

namespace verger::http {
namespace {

namespace zlib = boost::beast::zlib;

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1U) != 0 ? value >> 1U ^ 0xEDB88320U : value >> 1U;
    }
    table.at(i) = value;
  }
  return table;
}();

std::uint32_t crc32(std::string_view text) {
  std::uint32_t sum = ~0U;
  for (const char c : text) {
    sum = sum >> 8U ^ kCrcTable.at((sum ^ static_cast<unsigned char>(c)) & 0xFFU);
  }
  return ~sum;
}

void append_little_endian(std::string& out, std::uint32_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    out += static_cast<char>(value >> shift & 0xFFU);
  }
}

std::string deflated(std::string_view text) {
  zlib::deflate_stream stream;
  std::string out(stream.upper_bound(text.size()), '\0');
  zlib::z_params work;
  work.next_in = text.data();
  work.avail_in = text.size();
  work.next_out = out.data();
  work.avail_out = out.size();
  boost::system::error_code error;
  stream.write(work, zlib::Flush::finish, error);
  VERGER_ASSERT(error == zlib::error::end_of_stream);  // upper_bound() is enough for all of it
  out.resize(work.total_out);
  return out;
}

}  // namespace

std::string compressed(std::string_view text, ContentEncoding encoding) {
  if (text.empty()) {
    return {};
  }
  if (encoding == ContentEncoding::kDeflate) {
    return deflated(text);
  }
  using namespace std::string_view_literals;
  std::string out("\x1f\x8b\x08\0\0\0\0\0\0\xff"sv);  // no name, no time, made nowhere special
  out += deflated(text);
  append_little_endian(out, crc32(text));
  append_little_endian(out, static_cast<std::uint32_t>(text.size()));
  return out;
}

}  // namespace verger::http
