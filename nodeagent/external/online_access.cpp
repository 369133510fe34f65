#include "nodeagent/external/online_access.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "engine/base/unique_fd.h"
#include "nodeagent/api/node.h"

namespace verger::external {
namespace {

constexpr api::Version kFirstWithSocket{23, 6, 0};

std::string version_problem(std::string_view text) {
  if (text.empty()) {
    return "the server does not answer, and its version is not known";
  }
  const auto version = api::parse_version(text);
  if (!version) {
    return fmt::format("the server's version is \"{}\", which tells nothing of what it offers",
                       text);
  }
  return *version < kFirstWithSocket
             ? fmt::format(
                   "version {} does not offer to switch chunk files: servers do from 23.6 "
                   "on",
                   text)
             : std::string();
}

std::optional<struct stat> status_of(const Path& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 ? std::optional(found) : std::nullopt;
}

/// Root may do all; another user's server cannot rename what is not its own.
std::string owner_problem(const Path& socket, const Path& database) {
  const auto of_socket = status_of(socket);
  const auto of_database = status_of(database);
  if (!of_socket || !of_database) {
    return fmt::format("{}: cannot be looked at", (of_socket ? database : socket).string());
  }
  return of_socket->st_uid == 0 || of_socket->st_uid == of_database->st_uid
             ? std::string()
             : fmt::format(
                   "{} belongs to the user {}, and {} to {}: the server could not rename "
                   "files that get the directory's owner; give the directory to the "
                   "server's user",
                   socket.string(), of_socket->st_uid, database.string(), of_database->st_uid);
}

/// A connection that asks nothing and is closed at once.
std::string connection_problem(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return fmt::format("{}: longer than the {} bytes that the path of a socket may have", path,
                       sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the interface of the kernel
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return {};
  }
  switch (errno) {
    case EAGAIN:  // it listens, and has many connections to accept
      return {};
    case EACCES:
      return fmt::format("{} is not open to this process: run the agent as the server's user",
                         path);
    case ECONNREFUSED:
      return fmt::format("{}: no process listens there; an earlier one left it", path);
    default:
      return fmt::format("{}: {}", path, std::generic_category().message(errno));
  }
}

}  // namespace

OnlineLook look_at_online_access(const DatabasePlace& place, std::string_view version,
                                 const FileMaker& maker) {
  OnlineLook out;
  const auto of_database = status_of(place.database);
  const auto of_index = status_of(place.index_directory());
  out.one_file_system = of_database && of_index && of_database->st_dev == of_index->st_dev;
  out.problem = version_problem(version);
  if (!out.problem.empty()) {
    return out;
  }
  const std::array directories{place.database};
  if (const auto owner = check_file_owner(directories, maker); !owner) {
    out.problem = owner.error().message;
    return out;
  }
  auto socket = client::find_redaction_socket(place.database.string());
  if (!socket) {
    out.problem = socket.error().message;
    return out;
  }
  out.socket = *std::move(socket);
  out.problem = owner_problem(out.socket.path, place.database);
  if (out.problem.empty()) {
    out.problem = connection_problem(out.socket.path);
  }
  return out;
}

OnlineAccess::OnlineAccess(DatabasePlace place, OfflineMachine machine, http::Timers& timers,
                           std::function<std::string()> version, std::function<std::string()> more)
    : place_(std::move(place)),
      machine_(machine),
      timers_(timers),
      version_(std::move(version)),
      more_(std::move(more)) {}

OnlineLook OnlineAccess::look() const {
  auto out = look_at_online_access(place_, version_());
  if (out.problem.empty() && more_) {
    out.problem = more_();
  }
  return out;
}

Result<std::shared_ptr<client::RedactionClient>> OnlineAccess::connect(
    const net::any_io_executor& executor) const {
  auto seen = look();
  if (!seen.problem.empty()) {
    return Error{Errc::kRefused, std::move(seen.problem)};
  }
  VERGER_TRY(auto connected, client::RedactionClient::connect(executor, std::move(seen.socket), {},
                                                              timers_, machine_.log));
  return std::shared_ptr<client::RedactionClient>(std::move(connected));
}

}  // namespace verger::external
