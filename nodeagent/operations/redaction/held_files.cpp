#include "nodeagent/operations/redaction/held_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <string_view>

namespace verger::agent {
namespace {

namespace fs = std::filesystem;

/// What the kernel adds to the name of a file that was removed.
constexpr std::string_view kRemovedMark = " (deleted)";

bool is_process(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](const char digit) {
    return std::isdigit(static_cast<unsigned char>(digit)) != 0;
  });
}

/// The path without the kernel's mark, relative to `root`; nullopt: it is no removed file in there.
std::optional<std::string> removed_below(std::string_view target, const std::string& root) {
  if (!target.starts_with(root) || !target.ends_with(kRemovedMark)) {
    return std::nullopt;
  }
  return std::string(target.substr(root.size(), target.size() - root.size() - kRemovedMark.size()));
}

/// A process that ends meanwhile has nothing open; another user's cannot be looked into.
void add_open(const fs::path& process, const std::string& root, std::vector<HeldFile>& into) {
  std::error_code gone;
  for (fs::directory_iterator file(process / "fd", gone), last; !gone && file != last;
       file.increment(gone)) {
    std::error_code unreadable;
    const auto target = fs::read_symlink(file->path(), unreadable).string();
    if (unreadable) {
      continue;
    }
    if (auto name = removed_below(target, root)) {
      into.push_back({.name = *std::move(name),
                      .process = process.filename().string(),
                      .open_as = file->path()});
    }
  }
}

/// What is mapped may be closed. Only what can hold records: a server maps index tables, too.
void add_mapped(const fs::path& process, const std::string& root, std::vector<HeldFile>& into) {
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    const auto at = line.find(root);
    auto name = at == std::string::npos ? std::nullopt
                                        : removed_below(std::string_view(line).substr(at), root);
    const bool may_have_records = name && (name->starts_with("chunk-") || name->ends_with(".tmp"));
    if (may_have_records && std::ranges::none_of(into, [&](const HeldFile& known) {
          return known.name == *name && known.process == process.filename().string();
        })) {
      into.push_back({.name = *std::move(name), .process = process.filename().string()});
    }
  }
}

}  // namespace

std::string HeldFile::text() const { return fmt::format("{} (process {})", name, process); }

std::vector<HeldFile> held_files(const Path& directory, const Path& proc) {
  std::error_code failed;
  auto root = fs::canonical(directory, failed).string();
  if (failed) {
    return {};
  }
  root += '/';
  std::vector<HeldFile> out;
  for (fs::directory_iterator process(proc, failed), end; !failed && process != end;
       process.increment(failed)) {
    if (is_process(process->path().filename().string())) {
      add_open(process->path(), root, out);
      add_mapped(process->path(), root, out);
    }
  }
  return out;
}

std::vector<std::string> removed_and_held(const Path& directory) {
  std::vector<std::string> out;
  for (const auto& file : held_files(directory)) {
    out.push_back(file.text());
  }
  return out;
}

}  // namespace verger::agent
