#include "nodeagent/daemon/credentials_file.h"

#include <fmt/format.h>

#include "engine/base/bytes.h"

namespace verger::agent {
namespace {

constexpr std::uint64_t kLargest = 4'096;

}  // namespace

CredentialsFile::CredentialsFile(Path path, FileSystem& files, Log& log)
    : path_(std::move(path)),
      files_(files),
      log_(log),
      current_(std::make_shared<client::Credentials>()) {}

Result<std::unique_ptr<CredentialsFile>> CredentialsFile::open(Path path, FileSystem& files,
                                                               Log& log) {
  std::unique_ptr<CredentialsFile> out(new CredentialsFile(std::move(path), files, log));
  VERGER_TRY(*out->current_, out->read());
  out->look_who_may_read();
  return out;
}

Result<client::Credentials> CredentialsFile::read() const {
  VERGER_TRY(const auto bytes, read_file(files_, path_, kLargest));
  auto text = as_text(bytes);
  const auto line = [&text] {
    const auto end = text.find('\n');
    auto one = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    return std::string(one.substr(0, one.find('\r')));
  };
  client::Credentials out;
  out.user = line();
  out.password = line();
  if (out.user.empty() || out.password.empty()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: the first line must be the user, the second the password",
                             path_.string())};
  }
  return out;
}

void CredentialsFile::look() {
  look_who_may_read();
  auto now = read();
  auto problem = now ? std::string() : now.error().message;
  if (problem != unreadable_ && !problem.empty()) {
    log_.error("the credentials were not read again; the former ones stay", {{"error", problem}});
  }
  unreadable_ = std::move(problem);
  if (now && (now->user != current_->user || now->password != current_->password)) {
    *current_ = *std::move(now);
    log_.info("the credentials have changed", {{"file", path_.string()}, {"user", current_->user}});
  }
}

void CredentialsFile::look_who_may_read() {
  auto exposed = exposed_secret(files_, path_);
  if (!exposed.empty() && exposed != exposed_) {
    log_.warning(exposed);
  }
  exposed_ = std::move(exposed);
}

std::string CredentialsFile::warning() const {
  return unreadable_.empty()
             ? exposed_
             : fmt::format("its credentials were not read again, the former ones stay: {}",
                           unreadable_);
}

}  // namespace verger::agent
