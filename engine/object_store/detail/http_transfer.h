#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/object_store/s3_settings.h"

namespace verger::object_store::detail {

enum class Method : std::uint8_t { kGet, kHead, kPut, kPost, kDelete };

/// One request; the views outlive its transfer.
struct HttpRequest {
  Method method = Method::kGet;
  std::string url{};
  std::vector<std::string> headers{};  ///< "name: value"
  ByteView body{};
  std::chrono::milliseconds timeout{};
  /// Where the body of a partial answer (206) is written to; any other body is in HttpOutcome.
  MutableBytes into{};
};

/// How a transfer ended.
struct HttpOutcome {
  enum class Failure : std::uint8_t {
    kNone,       ///< there is an answer
    kPassing,    ///< no connection, a timeout, cut: it may be another time
    kPermanent,  ///< such as a certificate that is not trusted
  };
  Failure failure = Failure::kNone;
  std::string problem{};  ///< why it failed
  int status = 0;
  std::map<std::string, std::string> headers{};  ///< names in lower case
  Bytes body{};
  std::size_t received = 0;  ///< of `into`, also where it was cut

  [[nodiscard]] std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

/// Requests over libcurl, signed for S3 (AWS version 4). Connections are kept between requests.
/// Safe from any thread; a request blocks its caller.
class HttpTransfers {
 public:
  explicit HttpTransfers(const S3Settings& settings);
  ~HttpTransfers();
  HttpTransfers(const HttpTransfers&) = delete;
  HttpTransfers& operator=(const HttpTransfers&) = delete;

  HttpOutcome perform(const HttpRequest& request);

 private:
  struct Handle;
  std::unique_ptr<Handle> take();
  void give(std::unique_ptr<Handle> handle);

  const S3Settings& settings_;
  std::string signing_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Handle>> idle_;
};

}  // namespace verger::object_store::detail
