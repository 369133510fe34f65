#include "tests/support/object_store/signature.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/base/secret.h"

namespace verger::test {
namespace {

std::string header_of(const S3Call& call, const std::string& name) {
  const auto found = call.headers.find(name);
  return found == call.headers.end() ? std::string() : found->second;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string canonical_query(const S3Call& call) {
  std::string query;
  for (const auto& [name, value] : call.query) {  // in their order
    query += fmt::format("{}{}={}", query.empty() ? "" : "&", percent_encoded(name, false),
                         percent_encoded(value, false));
  }
  return query;
}

}  // namespace

std::string percent_encoded(std::string_view text, bool keep_slash) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string result;
  for (const char letter : text) {
    if (kPlain.contains(letter) || (keep_slash && letter == '/')) {
      result += letter;
    } else {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(letter));
    }
  }
  return result;
}

std::string authorization_part(const S3Call& call, const std::string& name) {
  const auto header = header_of(call, "authorization");
  const auto at = header.find(name + "=");
  if (at == std::string::npos) {
    return {};
  }
  const auto begin = at + name.size() + 1;
  return header.substr(begin, header.find(',', begin) - begin);
}

std::string expected_signature(const S3Call& call, const std::string& secret) {
  const auto names = authorization_part(call, "SignedHeaders");
  std::string headers;
  for (std::size_t at = 0; at < names.size();) {
    const auto end = std::min(names.find(';', at), names.size());
    const auto name = names.substr(at, end - at);
    headers += fmt::format("{}:{}\n", name, header_of(call, name));
    at = end + 1;
  }
  const auto canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", call.method, percent_encoded(call.path, true),
                  canonical_query(call), headers, names, header_of(call, "x-amz-content-sha256"));
  // "KEY-ID/20240101/us-east-1/s3/aws4_request"
  const auto credential = authorization_part(call, "Credential");
  const auto scope = credential.substr(std::min(credential.find('/') + 1, credential.size()));
  const auto text = fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", header_of(call, "x-amz-date"),
                                scope, to_hex(sha256(as_bytes(canonical))));
  auto key = "AWS4" + secret;
  for (std::size_t at = 0; at < scope.size();) {
    const auto end = std::min(scope.find('/', at), scope.size());
    key = from_hex(hmac_sha256(key, scope.substr(at, end - at)));
    at = end + 1;
  }
  return hmac_sha256(key, text);
}

}  // namespace verger::test
