#include "nodeagent/daemon/detail/slow_disk.h"

#include <chrono>
#include <thread>

#include "engine/base/number_from_text.h"

namespace verger::agent {

SlowDisk::SlowDisk(FileSystem& disk, Path file, Random& random, Log& log)
    : file_(std::move(file)), random_(random), log_(log), files_(disk, [this] { wait(); }) {}

void SlowDisk::wait() const {
  const auto text = read_file(posix_file_system(), file_, 16);
  const auto longest =
      text ? number_from_text<std::uint32_t>(as_text(*text)).value_or(0) : std::uint32_t{0};
  if (longest == 0) {
    return;
  }
  const auto takes = 1 + random_.below(longest);
  log_.info("a sync takes long", {{"ms", std::to_string(takes)}});
  std::this_thread::sleep_for(std::chrono::milliseconds(takes));
}

}  // namespace verger::agent
