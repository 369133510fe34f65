#include "nodeagent/grpc/framing.h"

#include <array>
#include <fmt/format.h>
#include <limits>
#include <zlib.h>

#include "engine/base/number_from_text.h"

namespace verger::grpc {
namespace {

constexpr std::size_t kPrefix = 5;

}  // namespace

std::string framed(std::string_view message) {
  std::string out(kPrefix, '\0');
  for (std::size_t i = 1; i < kPrefix; ++i) {
    out[i] = static_cast<char>(message.size() >> 8U * (kPrefix - 1 - i) & 0xFFU);
  }
  out += message;
  return out;
}

std::expected<std::optional<std::string>, Status> MessageReader::next() {
  const auto left = std::string_view(bytes_).substr(begin_);
  if (left.size() < kPrefix) {
    return std::nullopt;
  }
  std::size_t size = 0;
  for (std::size_t i = 1; i < kPrefix; ++i) {
    size = size << 8U | static_cast<unsigned char>(left[i]);
  }
  const Status too_large{.code = Code::kResourceExhausted,
                         .message =
                             "Received message exceeds the maximum configured message "
                             "size."};
  if (size > most_bytes_) {
    return std::unexpected(too_large);
  }
  if (left.size() - kPrefix < size) {
    return std::nullopt;
  }
  std::string message(left.substr(kPrefix, size));
  const bool compressed = left[0] != '\0';
  begin_ += kPrefix + size;
  if (begin_ == bytes_.size()) {
    bytes_.clear();
    begin_ = 0;
  } else if (begin_ > bytes_.size() / 2) {
    bytes_.erase(0, begin_);
    begin_ = 0;
  }
  if (!compressed) {
    return message;
  }
  if (encoding_ == Encoding::kNone) {
    return std::unexpected(
        Status{.code = Code::kInternal,
               .message = "Request did not include grpc-encoding value with compressed message."});
  }
  auto text = inflated(message, most_bytes_);
  if (!text) {
    return std::unexpected(too_large);
  }
  return text;
}

std::optional<std::string> inflated(std::string_view bytes, std::size_t most_bytes) {
  constexpr int kDetectGzipOrZlib = 32 + MAX_WBITS;
  z_stream stream{};
  if (inflateInit2(&stream, kDetectGzipOrZlib) != Z_OK) {
    return std::nullopt;
  }
  std::string in(bytes);
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  std::string out;
  std::array<char, 16384> piece{};
  int state = Z_OK;
  while (state == Z_OK && out.size() <= most_bytes) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || out.size() > most_bytes) {
    return std::nullopt;
  }
  return out;
}

std::optional<std::chrono::nanoseconds> parse_timeout(std::string_view text) {
  constexpr std::size_t kMostDigits = 8;
  if (text.size() < 2 || text.size() > kMostDigits + 1) {
    return std::nullopt;
  }
  const auto value = number_from_text<std::int64_t>(text.substr(0, text.size() - 1));
  if (!value || *value < 0) {
    return std::nullopt;
  }
  switch (text.back()) {
    case 'H':
      // A hundred million hours do not fit; nothing waits for a year.
      return std::chrono::hours(std::min<std::int64_t>(*value, std::int64_t{24} * 365));
    case 'M':
      return std::chrono::minutes(*value);
    case 'S':
      return std::chrono::seconds(*value);
    case 'm':
      return std::chrono::milliseconds(*value);
    case 'u':
      return std::chrono::microseconds(*value);
    case 'n':
      return std::chrono::nanoseconds(*value);
    default:
      return std::nullopt;
  }
}

std::string encode_message(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c < ' ' || c > '~' || c == '%') {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string decode_message(std::string_view text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 &&
        digit(text[i + 2]) >= 0) {
      out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace verger::grpc
