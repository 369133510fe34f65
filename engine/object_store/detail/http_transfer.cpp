#include "engine/object_store/detail/http_transfer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <curl/curl.h>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/deleter.h"

namespace verger::object_store::detail {
namespace {

/// Documents are the largest bodies that are read as a whole.
constexpr std::size_t kLargestBody = 1ULL << 30U;
constexpr std::size_t kMostIdle = 16;
constexpr int kPartialContent = 206;

using HeaderList = std::unique_ptr<curl_slist, Deleter<curl_slist_free_all>>;

HeaderList list_of(const std::vector<std::string>& headers) {
  HeaderList list;
  const auto add = [&list](const char* line) {
    auto* const longer = curl_slist_append(list.get(), line);
    VERGER_ASSERT(longer != nullptr);  // no memory
    static_cast<void>(list.release());
    list.reset(longer);
  };
  add("Expect:");  // no waiting for "100 Continue", which not every server sends
  add("Content-Type: application/octet-stream");
  for (const auto& header : headers) {
    add(header.c_str());
  }
  return list;
}

const char* name_of(Method method) {
  switch (method) {
    case Method::kGet:
      return "GET";
    case Method::kHead:
      return "HEAD";
    case Method::kPut:
      return "PUT";
    case Method::kPost:
      return "POST";
    case Method::kDelete:
      return "DELETE";
  }
  return "GET";
}

/// What libcurl's functions fill.
struct Receiving {
  const HttpRequest& request;
  HttpOutcome& outcome;
  bool too_much = false;
};

std::size_t receive_header(char* data, std::size_t size, std::size_t count, void* to) {
  auto& outcome = static_cast<Receiving*>(to)->outcome;
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) {
    const auto space = std::min(line.find(' '), line.size());
    outcome.status = std::atoi(std::string(line.substr(space)).c_str());
    outcome.headers.clear();
    return line.size();
  }
  const auto colon = line.find(':');
  if (colon != std::string_view::npos) {
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), [](unsigned char letter) {
      return static_cast<char>(std::tolower(letter));
    });
    auto value = line.substr(colon + 1);
    const auto first = std::min(value.find_first_not_of(" \t"), value.size());
    value.remove_prefix(first);
    outcome.headers[name] = value.substr(0, value.find_last_not_of(" \t\r\n") + 1);
  }
  return line.size();
}

std::size_t receive_body(char* data, std::size_t size, std::size_t count, void* to) {
  auto& receiving = *static_cast<Receiving*>(to);
  auto& outcome = receiving.outcome;
  const auto bytes = ByteView(reinterpret_cast<const std::byte*>(data), size * count);
  const auto into = receiving.request.into;
  if (!into.empty() && outcome.status == kPartialContent) {
    if (bytes.size() > into.size() - outcome.received) {
      receiving.too_much = true;
      return 0;
    }
    std::ranges::copy(bytes, into.subspan(outcome.received).begin());
    outcome.received += bytes.size();
    return bytes.size();
  }
  if (bytes.size() > kLargestBody - outcome.body.size()) {
    receiving.too_much = true;
    return 0;
  }
  outcome.body.insert(outcome.body.end(), bytes.begin(), bytes.end());
  return bytes.size();
}

HttpOutcome::Failure failure_of(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpOutcome::Failure::kNone;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_WEIRD_SERVER_REPLY:
      return HttpOutcome::Failure::kPassing;
    default:
      return HttpOutcome::Failure::kPermanent;
  }
}

/// Once for the process, before any handle.
void start_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  VERGER_ASSERT(started == CURLE_OK);
}

template <class Value>
void set(CURL* curl, CURLoption option, Value value) {
  const auto code = curl_easy_setopt(curl, option, value);
  VERGER_ASSERT(code == CURLE_OK);  // an option that it does not know, or no memory
}

}  // namespace

struct HttpTransfers::Handle {
  std::unique_ptr<CURL, Deleter<curl_easy_cleanup>> curl{curl_easy_init()};
};

HttpTransfers::HttpTransfers(const S3Settings& settings)
    : settings_(settings), signing_(fmt::format("aws:amz:{}:s3", settings.region)) {
  start_curl();
}
HttpTransfers::~HttpTransfers() = default;

std::unique_ptr<HttpTransfers::Handle> HttpTransfers::take() {
  const std::scoped_lock lock(mutex_);
  if (idle_.empty()) {
    auto made = std::make_unique<Handle>();
    VERGER_ASSERT(made->curl != nullptr);  // no memory
    return made;
  }
  auto handle = std::move(idle_.back());
  idle_.pop_back();
  return handle;
}

void HttpTransfers::give(std::unique_ptr<Handle> handle) {
  const std::scoped_lock lock(mutex_);
  if (idle_.size() < kMostIdle) {
    idle_.push_back(std::move(handle));
  }
}

HttpOutcome HttpTransfers::perform(const HttpRequest& request) {
  auto handle = take();
  auto* const curl = handle->curl.get();
  curl_easy_reset(curl);  // its connections stay
  HttpOutcome outcome;
  Receiving receiving{.request = request, .outcome = outcome};
  std::array<char, CURL_ERROR_SIZE> text{};
  const auto headers = list_of(request.headers);
  set(curl, CURLOPT_ERRORBUFFER, text.data());
  set(curl, CURLOPT_NOSIGNAL, 1L);
  set(curl, CURLOPT_URL, request.url.c_str());
  set(curl, CURLOPT_PATH_AS_IS, 1L);
  set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  set(curl, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  set(curl, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
  set(curl, CURLOPT_USERAGENT, "verger");
  set(curl, CURLOPT_HTTPHEADER, headers.get());
  if (request.method == Method::kHead) {
    set(curl, CURLOPT_NOBODY, 1L);
  } else {
    if (request.method == Method::kPut || request.method == Method::kPost) {
      set(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      set(curl, CURLOPT_POSTFIELDS, request.body.empty() ? "" : as_text(request.body).data());
    }
    set(curl, CURLOPT_CUSTOMREQUEST, name_of(request.method));
  }
  set(curl, CURLOPT_AWS_SIGV4, signing_.c_str());
  set(curl, CURLOPT_USERNAME, settings_.credentials.access_key.c_str());
  set(curl, CURLOPT_PASSWORD, settings_.credentials.secret_key.c_str());
  if (!settings_.ca_file.empty()) {
    set(curl, CURLOPT_CAINFO, settings_.ca_file.c_str());
  }
  set(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings_.connect_timeout.count()));
  set(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.timeout.count()));
  set(curl, CURLOPT_BUFFERSIZE, 512L << 10U);
  set(curl, CURLOPT_UPLOAD_BUFFERSIZE, 512L << 10U);
  set(curl, CURLOPT_HEADERFUNCTION, &receive_header);
  set(curl, CURLOPT_HEADERDATA, &receiving);
  set(curl, CURLOPT_WRITEFUNCTION, &receive_body);
  set(curl, CURLOPT_WRITEDATA, &receiving);

  const auto code = curl_easy_perform(curl);
  outcome.failure = failure_of(code);
  if (code != CURLE_OK) {
    outcome.problem = receiving.too_much ? "the server sent more than was asked for"
                      : text[0] != '\0'  ? std::string(text.data())
                                         : std::string(curl_easy_strerror(code));
  }
  give(std::move(handle));
  return outcome;
}

}  // namespace verger::object_store::detail
