#include "nodeagent/external/archive_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <vector>

namespace verger::external {
namespace {

constexpr std::array kPackageFiles{"/etc/kurrentdb/kurrentdb.conf",
                                   "/etc/eventstore/eventstore.conf"};
constexpr std::string_view kSpace = " \t\r";

/// In lower case, without what keys and values are written with in some places only.
std::string bare(std::string_view text) {
  std::string out;
  for (const char each : text) {
    if (!std::string_view("-_\"' \t\r").contains(each)) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
    }
  }
  return out;
}

bool means_true(std::string_view bare_value) {
  return bare_value == "true" || bare_value == "yes" || bare_value == "on" || bare_value == "1";
}

std::string_view without_remark(std::string_view line) {
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '#' && (at == 0 || kSpace.contains(line[at - 1]))) {
      return line.substr(0, at);
    }
  }
  return line;
}

/// "Enabled: true" within braces, or behind "Archive:" on one line.
bool enables_on_one_line(std::string_view value) {
  auto inner = bare(value);
  std::erase_if(inner, [](char each) { return each == '{' || each == '}'; });
  while (!inner.empty()) {
    const auto comma = std::min(inner.find(','), inner.size());
    const auto part = inner.substr(0, comma);
    if (part.starts_with("enabled:") && means_true(std::string_view(part).substr(8))) {
      return true;
    }
    inner.erase(0, comma + 1);
  }
  return false;
}

}  // namespace

std::string archive_in_config(std::string_view text) {
  bool in_archive = false;
  int number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = without_remark(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const auto colon = line.find(':');
    if (bare(line).empty() || colon == std::string_view::npos) {
      continue;
    }
    const auto key = bare(line.substr(0, colon));
    const auto value = line.substr(colon + 1);
    const bool is_nested = kSpace.contains(line.front());
    if (!is_nested) {
      in_archive = key == "archive";
      if (key == "archiver" && means_true(bare(value))) {
        return fmt::format("Archiver: true, line {}", number);
      }
    }
    if (in_archive &&
        (is_nested ? key == "enabled" && means_true(bare(value)) : enables_on_one_line(value))) {
      return fmt::format("Archive: Enabled: true, line {}", number);
    }
  }
  return {};
}

std::string archive_at_start(const StartOptions& options) {
  for (const auto* name : {"archiver", "archive-enabled", "archive:enabled"}) {
    auto shown = given_at_start(options, name);
    const auto value = bare(shown.substr(std::min(shown.find_last_of("= ") + 1, shown.size())));
    // A flag without a value means true.
    if (!shown.empty() && value != "false" && value != "no" && value != "off" && value != "0") {
      return shown;
    }
  }
  return {};
}

std::string archive_problem(FileSystem& files, const std::optional<StartOptions>& options,
                            const Path& known_file) {
  const auto says = [](std::string_view where, std::string_view what) {
    return fmt::format(
        "the server has an archive ({}{}): the vendor's own work on chunk files is not made for "
        "that either; let the server scavenge itself",
        where, what);
  };
  if (options) {
    if (const auto given = archive_at_start(*options); !given.empty()) {
      return says("", given);
    }
  }
  auto file = options ? config_file_given(*options) : Path();
  file = file.empty() ? known_file : file;
  std::vector<Path> read;
  if (!file.empty()) {
    read.push_back(file);
  } else {
    read.assign(kPackageFiles.begin(), kPackageFiles.end());
  }
  for (const auto& each : read) {
    const auto content = read_file(files, each);
    if (!content && content.error().code != Errc::kNotFound) {
      return fmt::format("whether the server has an archive cannot be seen: {}",
                         content.error().message);
    }
    if (content) {
      if (const auto found = archive_in_config(as_text(*content)); !found.empty()) {
        return says(each.string() + ": ", found);
      }
    }
  }
  return {};
}

}  // namespace verger::external
