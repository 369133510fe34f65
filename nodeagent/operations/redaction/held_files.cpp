#include "nodeagent/operations/redaction/held_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>

namespace verger::agent {
namespace {

/// What the kernel adds to the name of a file that was removed.
constexpr std::string_view kRemovedMark = " (deleted)";

bool is_process(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](const char digit) {
    return std::isdigit(static_cast<unsigned char>(digit)) != 0;
  });
}

}  // namespace

std::vector<std::string> removed_and_held(const Path& directory) {
  namespace fs = std::filesystem;
  std::error_code failed;
  auto root = fs::canonical(directory, failed).string();
  if (failed) {
    return {};
  }
  root += '/';
  std::vector<std::string> out;
  for (fs::directory_iterator process("/proc", failed), end; !failed && process != end;
       process.increment(failed)) {
    const auto number = process->path().filename().string();
    if (!is_process(number)) {
      continue;
    }
    // A process that ends meanwhile has nothing open; another user's cannot be looked into.
    std::error_code gone;
    for (fs::directory_iterator file(process->path() / "fd", gone), last; !gone && file != last;
         file.increment(gone)) {
      std::error_code unreadable;
      const auto target = fs::read_symlink(file->path(), unreadable).string();
      if (unreadable || !target.starts_with(root) || !target.ends_with(kRemovedMark)) {
        continue;
      }
      const auto name =
          target.substr(root.size(), target.size() - root.size() - kRemovedMark.size());
      out.push_back(fmt::format("{} (process {})", name, number));
    }
  }
  return out;
}

}  // namespace verger::agent
