#include "engine/log/detail/server_search.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace verger::log::detail {
namespace {

namespace fs = std::filesystem;

/// What can be read of it: its process may end meanwhile. (Iterators over the stream would throw.)
std::string read_text(const Path& path) {
  std::ifstream in(path, std::ios::binary);
  std::array<char, 4096> block{};
  std::string text;
  while (in.read(block.data(), block.size()), in.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

/// Readable for all users, unlike the list of open files.
std::string command_of(const Path& process) {
  std::string text = read_text(process / "cmdline");
  std::ranges::replace(text, '\0', ' ');
  std::string name = read_text(process / "comm");
  while (!name.empty() && name.back() == '\n') {
    name.pop_back();
  }
  return text.empty() ? name : name + " (" + text.substr(0, 100) + ")";
}

/// By its program, or the one that it runs: what only speaks of a server, as
/// `journalctl -u eventstore` does, is none.
bool named_like_a_server(const Path& process) {
  std::string command = read_text(process / "cmdline");
  std::vector<std::string> names = {read_text(process / "comm")};
  for (int word = 0; word < 2; ++word) {
    const auto end = std::min(command.find('\0'), command.size());
    const auto name = Path(command.substr(0, end)).filename().string();
    names.push_back(name);
    if (name != "dotnet") {
      break;
    }
    command.erase(0, end + 1);
  }
  return std::ranges::any_of(names, [](std::string name) {
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return name.contains("eventstore") || name.contains("kurrent");
  });
}

/// The flags line of fdinfo is octal; its lowest two bits are the access mode.
bool open_for_writing(const Path& fdinfo) {
  const std::string text = read_text(fdinfo);
  const auto at = text.find("flags:");
  if (at == std::string::npos) {
    return true;  // hidden: rather refuse
  }
  const auto flags = std::strtoul(text.c_str() + at + 6, nullptr, 8);
  return (flags & 3U) != 0;
}

bool lies_in(const std::string& target, const std::string& directory) {
  return target.size() > directory.size() && target.starts_with(directory) &&
         target[directory.size()] == '/' && !target.ends_with("/verger.lock");
}

/// A file of `directory` the process may change; nullopt when there is none.
/// The error code says when its files cannot be listed.
std::optional<std::string> file_in_use(const Path& process, const std::string& directory,
                                       std::error_code& unreadable) {
  for (fs::directory_iterator at(process / "fd", unreadable), end; !unreadable && at != end;
       at.increment(unreadable)) {
    std::error_code gone;
    auto target = fs::read_symlink(at->path(), gone).string();
    if (gone || !lies_in(target, directory) ||
        !open_for_writing(process / "fdinfo" / at->path().filename())) {
      continue;
    }
    // Closed meanwhile, its flags were missing or another file's: a reader on its way.
    if (fs::read_symlink(at->path(), gone).string() == target && !gone) {
      return target;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<WritingProcess>> find_writing_process(const Path& directory,
                                                           const Path& proc) {
  std::error_code error;
  const std::string wanted = fs::canonical(directory, error).string();
  if (error) {
    return std::nullopt;  // no such directory: opening it says so
  }
  fs::directory_iterator at(proc, error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string pid = at->path().filename().string();
    if (!std::ranges::all_of(pid, [](unsigned char c) { return std::isdigit(c) != 0; }) ||
        pid == std::to_string(::getpid())) {
      continue;
    }
    std::error_code unreadable;
    const auto file = file_in_use(at->path(), wanted, unreadable);
    if (file) {
      return WritingProcess{std::stoll(pid), *file, command_of(at->path())};
    }
    if (unreadable && unreadable != std::errc::no_such_file_or_directory) {
      if (named_like_a_server(at->path())) {
        return Error{Errc::kRefused,
                     fmt::format("{}: cannot see whether process {} {} has files in it open; stop "
                                 "it, run as its user or root, or say --assume-stopped",
                                 directory.string(), pid, command_of(at->path()))};
      }
    }
  }
  if (error) {
    return Error{Errc::kRefused,
                 fmt::format("{}: cannot look for a server that has it open, {} is not readable "
                             "({}); make sure that none runs and say --assume-stopped",
                             directory.string(), proc.string(), error.message())};
  }
  return std::nullopt;
}

Result<void> refuse_running_server(const Path& directory, const Path& proc) {
  VERGER_TRY(const auto found, find_writing_process(directory, proc));
  if (found) {
    return Error{Errc::kRefused,
                 fmt::format("{}: process {} {} has it open for writing; stop that process first",
                             found->file, found->id, found->command)};
  }
  return {};
}

}  // namespace verger::log::detail
