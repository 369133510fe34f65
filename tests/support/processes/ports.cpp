#include "tests/support/processes/ports.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <filesystem>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

namespace verger::test {
namespace {

constexpr std::uint16_t kFirst = 20000;
constexpr std::uint16_t kLast = 32000;

bool can_listen(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return free;
}

}  // namespace

PortLease::PortLease(std::size_t count) {
  const auto directory = std::filesystem::temp_directory_path() / "verger-test-ports";
  std::filesystem::create_directories(directory);
  // Different tests begin at different places, so that they rarely try the same port.
  const auto start = static_cast<std::uint32_t>(getpid()) * 16U % (kLast - kFirst);
  for (std::uint32_t i = 0; i < kLast - kFirst && ports_.size() < count; ++i) {
    const auto port = static_cast<std::uint16_t>(kFirst + (start + i) % (kLast - kFirst));
    const auto name = (directory / std::to_string(port)).string();
    const int lock = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock < 0) {
      continue;
    }
    if (flock(lock, LOCK_EX | LOCK_NB) == 0 && can_listen(port)) {
      ports_.push_back(port);
      locks_.push_back(lock);
    } else {
      close(lock);
    }
  }
  if (ports_.size() < count) {
    throw std::runtime_error("no free port between 20000 and 32000");
  }
}

PortLease::~PortLease() {
  for (const int lock : locks_) {
    close(lock);
  }
}

}  // namespace verger::test
