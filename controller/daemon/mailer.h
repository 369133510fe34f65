#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>

#include "controller/scheduler/notifier.h"
#include "engine/base/file_system.h"

namespace verger::controller {

/// How mails leave the machine.
struct MailSettings {
  std::string url{};   ///< smtps://HOST:465, or smtp://HOST:587 with STARTTLS; empty: none do
  std::string from{};  ///< address
  std::string credentials{};    ///< file of mode 0600: user, password; empty: no login
  std::string trusted_roots{};  ///< a file or a directory
  std::chrono::milliseconds limit{30'000};
};

/// Errors: kInvalidArgument: no mail server, no address, or one without TLS beyond this machine.
Result<void> check_mail_settings(const MailSettings& settings);

/// Hands mails to one mail server, by libcurl, one after the other on a thread of its own. TLS is
/// required: only a server on loopback may be without. Credentials are read for each mail, so that
/// new ones count at once, and are in no message.
class Mailer {
 public:
  explicit Mailer(MailSettings settings);
  /// Ends a mail under way within a second; that it was not taken is then not known.
  ~Mailer();
  Mailer(const Mailer&) = delete;
  Mailer& operator=(const Mailer&) = delete;

  [[nodiscard]] bool configured() const { return !settings_.url.empty(); }
  /// Done once the server has taken it. Errors: kUnavailable, kRefused (the server said no, or its
  /// certificate is not trusted), those of the credentials' file. The mailer outlives the call.
  net::awaitable<Result<void>> send(Mail mail);

 private:
  Result<void> perform(const Mail& mail) const;

  MailSettings settings_;
  std::atomic<bool> stopping_ = false;
  net::thread_pool thread_{1};
};

/// The mail as SMTP carries it: headers, an empty line, the text; lines end with CR LF.
std::string mail_message(const Mail& mail, const std::string& from, Ticks now);

}  // namespace verger::controller
