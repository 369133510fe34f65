#include "engine/base/service_notify.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/number_from_text.h"
#include "engine/base/unique_fd.h"

namespace verger {
namespace {

std::string value_of(const std::map<std::string, std::string>& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

}  // namespace

ServiceNotify::ServiceNotify(const std::map<std::string, std::string>& environment, long own_pid)
    : socket_(value_of(environment, "NOTIFY_SOCKET")) {
  constexpr int kSignsOfLifePerLimit = 3;
  const auto limit =
      number_from_text<std::int64_t>(value_of(environment, "WATCHDOG_USEC")).value_or(0);
  // A child inherits the variables; only the process they name is watched.
  const auto watched = value_of(environment, "WATCHDOG_PID");
  if (!socket_.empty() && limit > 0 && (watched.empty() || watched == std::to_string(own_pid))) {
    const auto interval = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::microseconds(limit) / kSignsOfLifePerLimit);
    watchdog_interval_ = std::max(interval, std::chrono::milliseconds(1));
  }
}

ServiceNotify ServiceNotify::of_this_process() {
  std::map<std::string, std::string> environment;
  for (const auto* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): at the start, before there are threads
    if (const auto* value = std::getenv(name)) {
      environment.emplace(name, value);
    }
  }
  return {environment, static_cast<long>(::getpid())};
}

void ServiceNotify::ready(std::string_view status) const {
  send(fmt::format("READY=1\nSTATUS={}\n", status));
}

void ServiceNotify::stopping() const { send("STOPPING=1\nSTATUS=stopping\n"); }

void ServiceNotify::alive() const { send("WATCHDOG=1\n"); }

void ServiceNotify::send(std::string_view message) const {
  ::sockaddr_un address{};
  if (socket_.empty() || socket_.size() >= sizeof(address.sun_path)) {
    return;
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') {
    address.sun_path[0] = '\0';  // the abstract name space
  }
  const UniqueFd sender(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!sender.valid()) {
    return;
  }
  const auto length = static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + socket_.size());
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): how sockets take addresses
  const auto* const target = reinterpret_cast<const ::sockaddr*>(&address);
  while (::sendto(sender.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT, target,
                  length) < 0 &&
         errno == EINTR) {
  }
}

}  // namespace verger
