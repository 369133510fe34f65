#include "controller/daemon/certificate_signing.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/daemon/programs.h"
#include "engine/base/private_file.h"
#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/certificates/openssl.h"

namespace verger::controller {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMostOfFile = 256U << 10U;
constexpr std::size_t kMostOutput = 256U << 10U;
/// Of what a command says of a failure.
constexpr std::size_t kMostOfReason = 500;
constexpr milliseconds kShortestRest{5};
constexpr milliseconds kLongestRest{100};

Error wrong_name(std::string_view what, const std::string& name) {
  return {
      Errc::kInvalidArgument,
      fmt::format("\"{}\" is no name of {}: letters, digits, \"-\", \"_\" and \".\"", name, what)};
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](unsigned char each) {
    return std::isalnum(each) != 0 || each == '-' || each == '_' || each == '.';
  });
}

Result<std::string> text_of(const Path& file) {
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), file, kMostOfFile));
  return std::string(as_text(bytes));
}

/// A program that is under way; killed with its owner, if it runs still.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// True once it has ended.
  bool reap() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) {
      pid_ = -1;
    }
    return pid_ < 0;
  }
  void kill() {
    if (pid_ > 0) {
      kill_session(pid_);
      ::waitpid(pid_, &status_, 0);
      pid_ = -1;
    }
  }
  /// Of one that has ended; empty: well.
  [[nodiscard]] std::string problem() const {
    if (WIFSIGNALED(status_)) {
      return fmt::format("it was ended by signal {}", WTERMSIG(status_));
    }
    return WEXITSTATUS(status_) == 0 ? "" : fmt::format("it exited with {}", WEXITSTATUS(status_));
  }

 private:
  pid_t pid_;
  int status_ = 0;
};

/// What a program writes to one of its streams.
struct Output {
  UniqueFd from;
  std::string text;

  /// Takes what is there.
  void drain() {
    char piece[4096];
    while (from.valid() && text.size() <= kMostOutput) {
      const auto count = ::read(from.get(), piece, sizeof(piece));
      if (count > 0) {
        text.append(piece, static_cast<std::size_t>(count));
      } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
        from.reset();
      } else if (errno == EAGAIN) {
        return;
      }
    }
  }
};

Result<Pipe> make_output_pipe() {
  VERGER_TRY(auto pipe, make_pipe());
  if (::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK) != 0) {
    return Error{Errc::kIo, fmt::format("pipe: error {}", errno)};
  }
  return pipe;
}

/// The end of what it said, on one line. A key that it should have printed is no reason.
std::string reason_of(const std::string& text) {
  if (text.contains("PRIVATE KEY")) {
    return "(its message holds a private key and is not shown)";
  }
  std::string out;
  for (const char each : text.substr(text.size() - std::min(text.size(), kMostOfReason))) {
    const bool shown = std::isprint(static_cast<unsigned char>(each)) != 0;
    if (shown || (!out.empty() && out.back() != ' ')) {
      out += shown ? each : ' ';
    }
  }
  while (out.ends_with(' ')) {
    out.pop_back();
  }
  return out;
}

boost::asio::awaitable<Result<std::string>> run_command(Path program,
                                                        std::vector<std::string> command,
                                                        std::string input, milliseconds limit,
                                                        http::Timers& timers) {
  VERGER_CO_TRY(auto in, make_pipe());
  VERGER_CO_TRY(auto out, make_output_pipe());
  VERGER_CO_TRY(auto error, make_output_pipe());
  VERGER_CO_TRY(
      const auto pid,
      start_program(program, command,
                    {.in = in.read.get(), .out = out.write.get(), .error = error.write.get()}));
  Child child(pid);
  write_input(in.write.get(), input);
  in = {};
  out.write.reset();
  error.write.reset();
  Output answer{.from = std::move(out.read), .text = {}};
  Output complaint{.from = std::move(error.read), .text = {}};
  auto rest = kShortestRest;
  for (auto left = limit;; left -= rest, rest = std::min(rest * 2, kLongestRest)) {
    const bool ended = child.reap();
    answer.drain();
    complaint.drain();
    if (ended) {
      break;
    }
    if (answer.text.size() > kMostOutput || complaint.text.size() > kMostOutput) {
      child.kill();
      co_return Error{Errc::kRefused, fmt::format("the signing command {} wrote more than {} KiB",
                                                  command.front(), kMostOutput >> 10U)};
    }
    if (left.count() <= 0) {
      child.kill();
      const auto said = reason_of(complaint.text);
      co_return Error{
          Errc::kTimeout,
          fmt::format("the signing command {} was killed: it did not end within {} s{}{}",
                      command.front(), limit.count() / 1000,
                      said.empty() ? "" : "; it said: ", said)};
    }
    co_await timers.sleep_for(rest);
  }
  if (const auto problem = child.problem(); !problem.empty()) {
    const auto said = reason_of(complaint.text);
    co_return Error{Errc::kRefused,
                    fmt::format("the signing command {} failed: {}{}{}", command.front(), problem,
                                said.empty() ? "" : ": ", said)};
  }
  co_return std::move(answer.text);
}

}  // namespace

Result<certificates::SigningAuthority> CertificateSigning::authority(const SignerName& by) const {
  if (options_.authorities.empty()) {
    return Error{Errc::kNotFound,
                 "vergerd has no authorities: start it with --authorities-directory DIR, which "
                 "holds NAME.crt and NAME.key"};
  }
  if (!is_plain_name(by.authority)) {
    return wrong_name("an authority", by.authority);
  }
  certificates::SigningAuthority out;
  const auto file = [&](std::string_view extension) {
    return options_.authorities / (by.authority + std::string(extension));
  };
  VERGER_TRY(out.certificates, text_of(file(".crt")));
  VERGER_TRY(const auto read, certificates::read_details(out.certificates));
  if (!read.front().is_authority) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: {} is no authority (basicConstraints CA:TRUE)",
                             file(".crt").string(), read.front().info.subject)};
  }
  if (!by.command.empty()) {
    return out;
  }
  VERGER_RETURN_IF_ERROR(check_private_file(file(".key")));
  VERGER_TRY(out.key, text_of(file(".key")));
  VERGER_TRY(const bool has_password, posix_file_system().exists(file(".password")));
  if (has_password) {
    VERGER_RETURN_IF_ERROR(check_private_file(file(".password")));
    VERGER_TRY(const auto text, text_of(file(".password")));
    out.key_password = text.substr(0, text.find_first_of("\r\n"));
  }
  if (auto key = certificates::read_key(out.key, out.key_password); !key) {
    return key.error().within(file(".key").string());
  }
  return out;
}

Result<std::string> CertificateSigning::issuer(const SignerName& by) const {
  if (!by.command.empty()) {
    VERGER_RETURN_IF_ERROR(admit_program(
        {.directory = options_.commands, .option = "--signing-commands"}, by.command));
  }
  if (by.authority.empty()) {
    return by.command.empty()
               ? Result<std::string>(Error{Errc::kInvalidArgument,
                                           "neither an authority nor a signing command is named"})
               : Result<std::string>(std::string());
  }
  VERGER_TRY(auto found, authority(by));
  return std::move(found.certificates);
}

boost::asio::awaitable<Result<std::string>> CertificateSigning::sign(SigningOrder order) {
  VERGER_CO_TRY(const auto known, issuer(order.by));
  if (order.by.command.empty()) {
    VERGER_CO_TRY(const auto by, authority(order.by));
    VERGER_CO_TRY(auto made, certificates::issue(order.request, order.terms, by));
    co_return made.certificates + known;
  }
  if (order.request.size() > kMostInput) {
    co_return Error{Errc::kInvalidArgument, "the request is longer than a pipe holds"};
  }
  VERGER_CO_TRY(const auto program,
                admit_program({.directory = options_.commands, .option = "--signing-commands"},
                              order.by.command));
  VERGER_CO_TRY(auto answer,
                co_await run_command(program, {order.by.command, order.cluster, order.node},
                                     order.request, options_.limit, timers_));
  co_return answer + known;
}

}  // namespace verger::controller
