#include "engine/base/service_notify.h"

#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "engine/base/unique_fd.h"
#include "tests/support/temp_directory.h"

namespace verger {
namespace {

using std::chrono::milliseconds;

constexpr long kOwnPid = 4711;

/// Takes the place of the service manager.
class ManagerSocket {
 public:
  ManagerSocket() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto path = name();
    std::memcpy(address.sun_path, path.data(), path.size());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof(address)),
              0)
        << std::strerror(errno);
  }
  std::string name() const { return (directory_.path() / "notify").string(); }
  /// The next datagram; empty: there is none.
  std::string next() const {
    std::array<char, 4096> buffer{};
    const auto size = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    return size < 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(size));
  }

 private:
  test::TempDirectory directory_;
  UniqueFd socket_;
};

TEST(ServiceNotify, ReportsReadinessLifeAndStop) {
  const ManagerSocket manager;
  const ServiceNotify notify({{"NOTIFY_SOCKET", manager.name()}}, kOwnPid);
  notify.ready("serving http://127.0.0.1:2115");
  notify.alive();
  notify.stopping();
  EXPECT_EQ(manager.next(), "READY=1\nSTATUS=serving http://127.0.0.1:2115\n");
  EXPECT_EQ(manager.next(), "WATCHDOG=1\n");
  EXPECT_EQ(manager.next(), "STOPPING=1\nSTATUS=stopping\n");
  EXPECT_EQ(manager.next(), "");
}

TEST(ServiceNotify, FeedsTheWatchdogThreeTimesWithinItsLimit) {
  const ServiceNotify watched(
      {{"NOTIFY_SOCKET", "/s"}, {"WATCHDOG_USEC", "120000000"}, {"WATCHDOG_PID", "4711"}}, kOwnPid);
  EXPECT_EQ(watched.watchdog_interval(), milliseconds(40'000));
}

TEST(ServiceNotify, IgnoresAWatchdogOfAnotherProcessAndBadLimits) {
  const auto interval = [](const char* limit, const char* pid) {
    return ServiceNotify({{"NOTIFY_SOCKET", "/s"}, {"WATCHDOG_USEC", limit}, {"WATCHDOG_PID", pid}},
                         kOwnPid)
        .watchdog_interval();
  };
  EXPECT_EQ(interval("120000000", "1"), std::nullopt);
  EXPECT_EQ(interval("0", "4711"), std::nullopt);
  EXPECT_EQ(interval("soon", "4711"), std::nullopt);
  EXPECT_EQ(ServiceNotify({{"WATCHDOG_USEC", "120000000"}}, kOwnPid).watchdog_interval(),
            std::nullopt);
}

TEST(ServiceNotify, WithoutAManagerOrWithALostOneDoesNothing) {
  ServiceNotify({}, kOwnPid).ready("serving");
  ServiceNotify({{"NOTIFY_SOCKET", "/no/such/socket"}}, kOwnPid).ready("serving");
  ServiceNotify({{"NOTIFY_SOCKET", std::string(500, 'x')}}, kOwnPid).alive();
}

}  // namespace
}  // namespace verger
