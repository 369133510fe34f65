#pragma once

#include <cstdint>
#include <vector>

namespace verger::test {

/// TCP ports of 127.0.0.1 that belong to this test until the object ends: outside the range the
/// system hands out by itself, and reserved among all tests of this machine by a lock on a file for
/// each port.
class PortLease {
 public:
  explicit PortLease(std::size_t count);
  ~PortLease();
  PortLease(const PortLease&) = delete;
  PortLease& operator=(const PortLease&) = delete;
  std::uint16_t operator[](std::size_t index) const { return ports_[index]; }
  std::size_t size() const { return ports_.size(); }

 private:
  std::vector<std::uint16_t> ports_;
  std::vector<int> locks_;
};

}  // namespace verger::test
