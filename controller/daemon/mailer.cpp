#include "controller/daemon/mailer.h"

#include <algorithm>
#include <array>
#include <curl/curl.h>
#include <filesystem>
#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "controller/scheduler/notification_format.h"
#include "engine/base/clock.h"
#include "engine/base/private_file.h"
#include "nodeagent/http/base64.h"
#include "nodeagent/http/loopback.h"

namespace verger::controller {
namespace {

constexpr std::uint64_t kMailCredentialsBytes = 4096;
/// Of base64, as MIME has it.
constexpr std::size_t kLineLength = 76;
constexpr std::size_t kLongestSubject = 200;
/// Bytes of an encoded word, so that with "Subject: " in front its line has no more than 76.
constexpr std::size_t kBytesOfWord = 39;
constexpr long kConnectMilliseconds = 10'000;

bool is_within_character(const std::string& text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
}

struct CurlFree {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct ListFree {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

struct MailServer {
  bool tls_from_the_start = false;
  std::string host{};
};

Result<MailServer> mail_server_of(std::string_view url) {
  MailServer out;
  auto rest = url;
  if (rest.starts_with("smtps://")) {
    out.tls_from_the_start = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("smtp://")) {
    rest.remove_prefix(7);
  } else {
    return Error{Errc::kInvalidArgument,
                 fmt::format("--smtp-url {}: it takes smtps://HOST:465, or smtp://HOST:587", url)};
  }
  if (rest.contains('@') || rest.contains('/')) {
    return Error{Errc::kInvalidArgument,
                 "--smtp-url has host and port alone; user and password are in the file of "
                 "--smtp-credentials-file"};
  }
  const auto colon = rest.rfind(':');
  const bool has_port = colon != std::string_view::npos && !rest.ends_with(']');
  out.host = std::string(rest.substr(0, has_port ? colon : rest.size()));
  if (out.host.starts_with('[') && out.host.ends_with(']')) {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  if (out.host.empty()) {
    return Error{Errc::kInvalidArgument, fmt::format("--smtp-url {}: the host is missing", url)};
  }
  return out;
}

/// User and password, a line each.
Result<std::pair<std::string, std::string>> mail_credentials(const std::string& file) {
  VERGER_RETURN_IF_ERROR(check_private_file(file));
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), file, kMailCredentialsBytes));
  const std::string text(as_text(bytes));
  const auto end = text.find('\n');
  auto user = text.substr(0, end);
  auto password = end == std::string::npos ? std::string() : text.substr(end + 1);
  password = password.substr(0, password.find_first_of("\r\n"));
  while (user.ends_with('\r')) {
    user.pop_back();
  }
  if (user.empty() || password.empty()) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("{}: its first line has to be the user, its second one the password", file)};
  }
  return std::pair(std::move(user), std::move(password));
}

/// What libcurl still has to read of a message.
struct Unread {
  std::string_view rest;
  static std::size_t read(char* into, std::size_t size, std::size_t count, void* self) {
    auto& rest = static_cast<Unread*>(self)->rest;
    const auto length = std::min(size * count, rest.size());
    std::ranges::copy(rest.substr(0, length), into);
    rest.remove_prefix(length);
    return length;
  }
};

int end_if_stopping(void* stopping, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(stopping)->load() ? 1 : 0;
}

std::string base64_lines(std::string_view text) {
  const auto all = http::base64_encode(text);
  std::string out;
  for (std::size_t at = 0; at < all.size(); at += kLineLength) {
    out += all.substr(at, kLineLength) + "\r\n";
  }
  return out;
}

/// On one line; other characters than ASCII's as RFC 2047 has them, in words of at most 75.
std::string header_text(std::string text) {
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20U; }, ' ');
  if (text.size() > kLongestSubject) {
    auto end = kLongestSubject;
    while (end > 0 && is_within_character(text, end)) {
      --end;
    }
    text = text.substr(0, end) + "...";
  }
  const bool ascii =
      std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x7FU; });
  // What looks like an encoded word would be shown as what it means.
  if (ascii && !text.contains("=?")) {
    return text;
  }
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    auto end = std::min(at + kBytesOfWord, text.size());
    while (end > at + 1 && is_within_character(text, end)) {
      --end;
    }
    out += (out.empty() ? "" : "\r\n ") +
           fmt::format("=?UTF-8?B?{}?=", http::base64_encode(text.substr(at, end - at)));
    at = end;
  }
  return out;
}

/// "Thu, 26 Nov 2026 18:03:00 +0000"
std::string mail_date(Ticks now) {
  static constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed",
                                                    "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto iso = format_ticks(now);  // "2026-11-26T18:03:00..."
  const std::chrono::year_month_day day(
      std::chrono::year(std::stoi(iso.substr(0, 4))),
      std::chrono::month(static_cast<unsigned>(std::stoi(iso.substr(5, 2)))),
      std::chrono::day(static_cast<unsigned>(std::stoi(iso.substr(8, 2)))));
  const std::chrono::weekday weekday{std::chrono::sys_days(day)};
  return fmt::format("{}, {:02} {} {} {} +0000", kDays.at(weekday.c_encoding()),
                     static_cast<unsigned>(day.day()),
                     kMonths.at(static_cast<unsigned>(day.month()) - 1),
                     static_cast<int>(day.year()), iso.substr(11, 8));
}

bool started_curl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  return started == CURLE_OK;
}

}  // namespace

Result<void> check_mail_settings(const MailSettings& settings) {
  const auto wrong = [](std::string text) {
    return Error{Errc::kInvalidArgument, std::move(text)};
  };
  if (settings.url.empty()) {
    return settings.from.empty() && settings.credentials.empty()
               ? Result<void>()
               : wrong("--smtp-from and --smtp-credentials-file need --smtp-url");
  }
  VERGER_TRY(const auto server, mail_server_of(settings.url));
  if (!is_mail_address(settings.from)) {
    return wrong("--smtp-url needs --smtp-from, an address such as verger@example.com");
  }
  if (settings.trusted_roots.empty() &&
      (server.tls_from_the_start || !http::is_loopback(server.host))) {
    return wrong(
        fmt::format("--smtp-url {} needs --smtp-ca, such as "
                    "/etc/ssl/certs/ca-certificates.crt: mail goes by TLS alone",
                    settings.url));
  }
  return {};
}

std::string mail_message(const Mail& mail, const std::string& from, Ticks now) {
  const auto domain = from.substr(from.find('@') + 1);
  return fmt::format(
             "Date: {}\r\nFrom: Verger <{}>\r\nTo: <{}>\r\nMessage-ID: <{}@{}>\r\n"
             "Subject: {}\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
             "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n",
             mail_date(now), from, mail.to, mail.id, domain,
             header_text("[verger] " + mail.subject)) +
         base64_lines(mail.text);
}

Mailer::Mailer(MailSettings settings) : settings_(std::move(settings)) {}

Mailer::~Mailer() {
  stopping_ = true;
  thread_.join();
}

net::awaitable<Result<void>> Mailer::send(Mail mail) {
  struct OnThread {
    static net::awaitable<Result<void>> run(const Mailer& self, Mail mail) {
      co_return self.perform(mail);
    }
  };
  co_return co_await net::co_spawn(thread_, OnThread::run(*this, std::move(mail)),
                                   net::use_awaitable);
}

Result<void> Mailer::perform(const Mail& mail) const {
  if (!configured()) {
    return Error{Errc::kUnsupported, "vergerd has no mail server: --smtp-url"};
  }
  if (stopping_) {
    return Error{Errc::kUnavailable, "vergerd ends"};
  }
  VERGER_TRY(const auto server, mail_server_of(settings_.url));
  if (!started_curl()) {
    return Error{Errc::kIo, "libcurl cannot be used"};
  }
  const std::unique_ptr<CURL, CurlFree> handle(curl_easy_init());
  if (handle == nullptr) {
    return Error{Errc::kIo, "libcurl cannot be used"};
  }
  const auto message = mail_message(mail, settings_.from, system_clock().now());
  Unread unread{message};
  const auto from = fmt::format("<{}>", settings_.from);
  const std::unique_ptr<curl_slist, ListFree> recipients(
      curl_slist_append(nullptr, fmt::format("<{}>", mail.to).c_str()));
  std::array<char, CURL_ERROR_SIZE> reason{};
  auto* curl = handle.get();
  // NOLINTBEGIN(cppcoreguidelines-pro-type-vararg): libcurl's signature
  curl_easy_setopt(curl, CURLOPT_URL, settings_.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason.data());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(settings_.limit.count()));
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, kConnectMilliseconds);
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, end_if_stopping);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA,
                   const_cast<void*>(static_cast<const void*>(&stopping_)));  // NOLINT: only read
  // On loopback TLS is used where it is offered and its roots are known.
  const bool plain = settings_.trusted_roots.empty();
  curl_easy_setopt(curl, CURLOPT_USE_SSL,
                   static_cast<long>(plain ? CURLUSESSL_NONE : CURLUSESSL_ALL));
  if (!plain) {
    std::error_code ignored;
    const bool directory = std::filesystem::is_directory(settings_.trusted_roots, ignored);
    curl_easy_setopt(curl, CURLOPT_CAINFO, directory ? nullptr : settings_.trusted_roots.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, directory ? settings_.trusted_roots.c_str() : nullptr);
  }
  if (!settings_.credentials.empty()) {
    VERGER_TRY(const auto credentials, mail_credentials(settings_.credentials));
    curl_easy_setopt(curl, CURLOPT_USERNAME, credentials.first.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, credentials.second.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_MAIL_FROM, from.c_str());
  curl_easy_setopt(curl, CURLOPT_MAIL_RCPT, recipients.get());
  curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(curl, CURLOPT_READFUNCTION, Unread::read);
  curl_easy_setopt(curl, CURLOPT_READDATA, &unread);
  // NOLINTEND(cppcoreguidelines-pro-type-vararg)
  const auto result = curl_easy_perform(curl);
  if (result == CURLE_OK) {
    return {};
  }
  const std::string why = reason.front() != '\0' ? reason.data() : curl_easy_strerror(result);
  const bool said_no = result == CURLE_LOGIN_DENIED || result == CURLE_SEND_ERROR ||
                       result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_USE_SSL_FAILED;
  return Error{said_no ? Errc::kRefused : Errc::kUnavailable,
               fmt::format("{}: {}", settings_.url, why)};
}

}  // namespace verger::controller
