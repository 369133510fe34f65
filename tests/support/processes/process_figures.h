#pragma once

#include <cstdint>
#include <sys/types.h>

/// What /proc tells of a process that runs. They throw where it is gone.
namespace verger::test {

/// User and system time of all its threads so far.
double cpu_seconds(pid_t process);
double resident_mib(pid_t process);
double peak_resident_mib(pid_t process);

struct BytesRead {
  std::int64_t asked = 0;      ///< by read() and its like, also from the page cache; no sockets
  std::int64_t from_disk = 0;  ///< fetched from the storage for it
};
BytesRead bytes_read(pid_t process);

}  // namespace verger::test
