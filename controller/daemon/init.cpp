#include "controller/daemon/init.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/daemon/agents_authority.h"
#include "controller/daemon/bootstrap_token_file.h"
#include "controller/daemon/vergerd_options.h"
#include "engine/base/directories.h"
#include "engine/base/exit_code.h"
#include "engine/base/private_file.h"
#include "engine/settings/daemon_call.h"
#include "nodeagent/http/loopback.h"
#include "nodeagent/http/tls.h"

namespace verger::controller {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kConfigurationBytes = 256U << 10U;

struct InitOptions {
  std::string data = "/var/lib/verger";
  std::string file = "/etc/verger/vergerd.yaml";
  std::string names;
  std::string certificate;
  std::string private_key;
  std::string host;
  std::int64_t port = 2115;
  std::string admin = "admin";
};

void declare(settings::Settings& all, InitOptions& options) {
  all.add("data", options.data, "vergerd's data directory");
  all.add("file", options.file, "The configuration file to write");
  all.add("api-names", options.names,
          "Names and addresses by which others reach the API, commas between: vergerd makes its "
          "certificate itself. Without it and without a certificate the API serves this machine "
          "alone");
  all.add("api-certificate-file", options.certificate,
          "Certificate of the API in place of one of vergerd's own authority");
  all.add("api-certificate-private-key-file", options.private_key, "Its key");
  all.add("host", options.host,
          "Address to listen on (default: 0.0.0.0 with a certificate, else 127.0.0.1)");
  all.add("port", options.port, "Port of the API");
  all.add("admin", options.admin, "Name of the first admin's token");
  all.set_footer(
      "What is there is kept; a configuration file that sets something else is refused.\n"
      "Example: sudo vergerd init --api-names verger.example.com && sudo systemctl restart "
      "vergerd");
}

Error refused(std::string text) { return {Errc::kRefused, std::move(text)}; }

/// Prepares the first start, and remembers what it did.
class Preparation {
 public:
  explicit Preparation(const InitOptions& options) : options_(options) {}

  Result<void> run() {
    VERGER_RETURN_IF_ERROR(check());
    VERGER_RETURN_IF_ERROR(look_at_configuration());
    VERGER_RETURN_IF_ERROR(make_directories());
    VERGER_RETURN_IF_ERROR(make_authority());
    VERGER_RETURN_IF_ERROR(make_token());
    return write_configuration();
  }
  [[nodiscard]] std::string report() const;

 private:
  Result<void> check();
  Result<void> look_at_configuration();
  Result<void> make_directories();
  Result<void> make_authority();
  Result<void> make_token();
  Result<void> write_configuration();
  Result<void> hand_over(const Path& path) const;
  void note(std::string_view what, const Path& path, std::string_view about) {
    done_ += fmt::format("  {:<6} {:<36} {}\n", what, path.string(), about);
  }
  [[nodiscard]] std::vector<std::string> wanted() const;

  const InitOptions& options_;
  VergerdOptions daemon_;
  std::string written_;  ///< the configuration's text; empty: it is there as it should be
  std::string done_;
  std::string fingerprint_;
  bool token_is_there_ = false;
};

/// The options of the configuration file.
std::vector<std::string> Preparation::wanted() const {
  std::vector<std::string> out{"--data", daemon_.data};
  const auto add = [&out](const char* flag, const std::string& value) {
    out.insert(out.end(), {flag, value});
  };
  const VergerdOptions defaults;
  if (daemon_.host != defaults.host) {
    add("--host", daemon_.host);
  }
  if (daemon_.port != defaults.port) {
    add("--port", std::to_string(daemon_.port));
  }
  if (!daemon_.api_names.empty()) {
    add("--api-names", daemon_.api_names);
  }
  if (!daemon_.api_tls.certificate.empty()) {
    add("--api-certificate-file", daemon_.api_tls.certificate);
    add("--api-certificate-private-key-file", daemon_.api_tls.private_key);
  }
  return out;
}

Result<std::string> configuration(const std::vector<std::string>& arguments) {
  settings::Settings all("vergerd", "");
  VergerdOptions ignored;
  add_options(all, ignored);
  return settings::defaults_of(all, arguments, "vergerd");
}

Result<void> Preparation::check() {
  if (options_.port < 1 || options_.port > 65'535) {
    return Error{Errc::kInvalidArgument, "--port takes 1 to 65535"};
  }
  daemon_.data = options_.data;
  daemon_.api_names = options_.names;
  daemon_.api_tls.certificate = options_.certificate;
  daemon_.api_tls.private_key = options_.private_key;
  daemon_.port = static_cast<std::uint16_t>(options_.port);
  daemon_.host = !options_.host.empty()   ? options_.host
                 : daemon_.api_is_https() ? "0.0.0.0"
                                          : "127.0.0.1";
  VERGER_RETURN_IF_ERROR(check_options(daemon_));
  if (!options_.certificate.empty()) {
    // The pair as a start would read it; whom it names is the operator's choice.
    VERGER_TRY(const auto loaded,
               http::TlsContext::server(daemon_.api_tls, http::ClientCertificate::kNotRequested));
    static_cast<void>(loaded);
  }
  return {};
}

/// Before anything is made: a file that says something else is not replaced.
Result<void> Preparation::look_at_configuration() {
  VERGER_TRY(auto text, configuration(wanted()));
  VERGER_TRY(const bool there, posix_file_system().exists(options_.file));
  if (!there) {
    written_ = std::move(text);
    return {};
  }
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), options_.file, kConfigurationBytes));
  const auto present = as_text(bytes);
  if (present == text) {
    note("kept", options_.file, "says the same");
    return {};
  }
  VERGER_TRY(const auto defaults, configuration({"--data", daemon_.data}));
  if (present == defaults) {
    written_ = std::move(text);
    return {};
  }
  std::string lines;
  const auto arguments = wanted();
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    lines += fmt::format("\n  {} {}", arguments[i], arguments[i + 1]);
  }
  return refused(fmt::format(
      "{}: it is there already and sets something else; nothing was made. To have vergerd init "
      "write it, move it away; or set in it what these options mean:{}",
      options_.file, lines));
}

/// Root prepares what vergerd's user will read: files get the owner of the data directory.
Result<void> Preparation::hand_over(const Path& path) const {
  struct stat of_data{};
  if (::geteuid() != 0 || ::stat(daemon_.data.c_str(), &of_data) != 0 || of_data.st_uid == 0) {
    return {};
  }
  return ::lchown(path.c_str(), of_data.st_uid, of_data.st_gid) == 0
             ? Result<void>()
             : Error{Errc::kIo, fmt::format("{}: its owner cannot be set", path.string())};
}

Result<void> Preparation::make_directories() {
  for (const auto& [path, about] :
       {std::pair(Path(daemon_.data), "vergerd's data"),
        std::pair(daemon_.credentials_directory(),
                  "a file for each cluster: user, password, hosts"),
        std::pair(Path(daemon_.data) / "trusted-roots", "roots of clusters' certificates")}) {
    VERGER_TRY(const bool there, posix_file_system().exists(path));
    if (there) {
      note("kept", path, about);
      continue;
    }
    VERGER_RETURN_IF_ERROR(make_directories_durably(posix_file_system(), path));
    VERGER_RETURN_IF_ERROR(hand_over(path));
    note("made", path, about);
  }
  return {};
}

Result<void> Preparation::make_authority() {
  std::vector<std::pair<Path, bool>> files;
  for (const auto& path : {daemon_.agents_ca(), Path(daemon_.data) / "agents-client.pem",
                           daemon_.api_own_certificate()}) {
    VERGER_TRY(const bool there, posix_file_system().exists(path));
    files.emplace_back(path, there);
  }
  VERGER_TRY(const auto authority, AgentsAuthority::open(daemon_));
  VERGER_TRY(const bool renewed, authority.renew_api(daemon_));
  static_cast<void>(renewed);
  for (const auto& [path, was_there] : files) {
    VERGER_TRY(const bool there, posix_file_system().exists(path));
    if (there && !was_there) {
      VERGER_RETURN_IF_ERROR(hand_over(path));
    }
  }
  note(files.front().second ? "kept" : "made", files.front().first,
       "authority of agents and of the API: keep a copy");
  if (!daemon_.api_names.empty()) {
    VERGER_RETURN_IF_ERROR(hand_over(daemon_.api_own_certificate()));
    note(renewed ? "made" : "kept", daemon_.api_own_certificate(),
         fmt::format("certificate of {}", fmt::join(daemon_.api_hosts(), ", ")));
    fingerprint_ = authority.authority.fingerprint();
  }
  return {};
}

Result<void> Preparation::make_token() {
  const auto file = FirstTokenFile::in(daemon_.data);
  VERGER_TRY(const bool there, posix_file_system().exists(file));
  if (there) {
    note("kept", file, "the first admin's token");
    token_is_there_ = true;
    return {};
  }
  // The bootstrap token is there as long as the journal has no token.
  VERGER_TRY(const bool journal, posix_file_system().exists(Path(daemon_.data) / "journal.db"));
  VERGER_TRY(const bool bootstrap,
             posix_file_system().exists(Path(daemon_.data) / "bootstrap-token"));
  if (journal && !bootstrap) {
    note("none", file, "the journal has tokens already: verger token create makes more");
    return {};
  }
  VERGER_RETURN_IF_ERROR(FirstTokenFile::make(file, options_.admin, system_random()));
  VERGER_RETURN_IF_ERROR(hand_over(file));
  token_is_there_ = true;
  note("made", file, fmt::format("the token of {}, mode 0600", options_.admin));
  return {};
}

Result<void> Preparation::write_configuration() {
  if (written_.empty()) {
    return {};
  }
  const Path file = options_.file;
  struct stat before{};
  const bool there = ::stat(file.c_str(), &before) == 0;
  if (const auto directory = file.parent_path(); !directory.empty() && !fs::exists(directory)) {
    VERGER_RETURN_IF_ERROR(make_directories_durably(posix_file_system(), directory));
    std::error_code ignored;  // then it is its owner's alone
    fs::permissions(directory, fs::perms(0755), ignored);
  }
  VERGER_RETURN_IF_ERROR(write_private_file(file, written_, IfThere::kReplace));
  if (there) {  // as the package, or an operator, has set them
    if (::chown(file.c_str(), before.st_uid, before.st_gid) != 0 ||
        ::chmod(file.c_str(), before.st_mode & 07777U) != 0) {
      return Error{Errc::kIo, options_.file + ": its owner and mode cannot be set again"};
    }
  } else {
    VERGER_RETURN_IF_ERROR(hand_over(file));
  }
  note(there ? "set" : "made", file, "it had nothing but defaults");
  if (!there) {
    done_.replace(done_.rfind("it had nothing but defaults"), std::string::npos,
                  "the configuration\n");
  }
  return {};
}

std::string Preparation::report() const {
  const auto at = daemon_.reached_at();
  const auto url =
      !at.empty() ? at
                  : http::Endpoint{.tls = daemon_.api_is_https(),
                                   .host = http::is_loopback(daemon_.host) ? daemon_.host : "HOST",
                                   .port = daemon_.port}
                        .url();
  std::string trust;
  if (!fingerprint_.empty()) {
    trust = " --ca-fingerprint " + fingerprint_;
  } else if (daemon_.api_is_https()) {
    trust = " --ca-file ROOT.crt";
  }
  auto out = done_ + fmt::format(
                         "\nNext, start vergerd (again):\n  systemctl restart vergerd\n"
                         "  # or: vergerd --config {}\n",
                         options_.file);
  if (token_is_there_) {
    out += fmt::format(
        "Then, on this machine or on yours:\n  sudo cat {} | verger login {} --token-file -{}\n",
        FirstTokenFile::in(daemon_.data).string(), url, trust);
  }
  return out;
}

}  // namespace

int run_init(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  settings::Settings all("vergerd init", "prepares vergerd's first start");
  InitOptions options;
  declare(all, options);
  // The environment is that of a daemon; what is written down here is said here.
  const auto action = all.parse({argv + 1, argv + argc}, {});
  if (!action) {
    err << "vergerd init: " << action.error().message << '\n';
    return kExitUsage;
  }
  if (*action == settings::Settings::Action::kHelp) {
    out << all.help();
    return kExitDone;
  }
  Preparation preparation(options);
  if (const auto done = preparation.run(); !done) {
    err << "vergerd init: " << done.error().message << '\n';
    return exit_code_of_start(done.error());
  }
  out << preparation.report();
  return kExitDone;
}

settings::ProgramCommand init_command() {
  return {"init [--api-names NAMES] [--OPTION VALUE] ...",
          "Prepares the first start: authority, certificate of the API, first admin's token, "
          "configuration file; replaces nothing (vergerd init --help)"};
}

}  // namespace verger::controller
