#include "nodeagent/external/archive_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <vector>

#include <nlohmann/json.hpp>

namespace verger::external {
namespace {

constexpr std::array kPackageFiles{"/etc/kurrentdb/kurrentdb.conf",
                                   "/etc/eventstore/eventstore.conf"};
constexpr std::array kPackageDirectories{"/etc/kurrentdb", "/etc/eventstore"};
/// In such a directory; with all of its "config", where names end in ".json".
constexpr std::array kJsonFiles{"kestrelsettings.json", "logconfig.json"};
constexpr std::array<std::string_view, 3> kSections{"kurrentdb:", "kurrent:", "eventstore:"};
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

/// The path of a member below `value` that switches an archive on; empty: none does. `path`: its
/// own, with ':' at the end.
std::string enabling_member(const nlohmann::json& value, const std::string& path) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      if (auto found = enabling_member(member, path + name + ":"); !found.empty()) {
        return found;
      }
    }
    return {};
  }
  auto name = bare(path);
  const auto* section = std::ranges::find_if(
      kSections, [&](std::string_view each) { return name.starts_with(each); });
  if (section == kSections.end()) {
    return {};
  }
  name.erase(0, section->size());
  const bool is_setting = name == "archiver:" || name == "archive:enabled:";
  const auto text = value.is_string() ? value.get<std::string>() : value.dump();
  return is_setting && means_true(bare(text)) ? path.substr(0, path.size() - 1) : std::string();
}

/// The JSON files that a server which is installed in `application` reads.
Result<std::vector<Path>> json_files(FileSystem& files, const Path& application) {
  std::vector<Path> directories(kPackageDirectories.begin(), kPackageDirectories.end());
  if (!application.empty()) {
    directories.push_back(application);
  }
  std::vector<Path> out;
  for (const auto& directory : directories) {
    for (const auto* name : kJsonFiles) {
      out.push_back(directory / name);
    }
    auto listed = files.list(directory / "config");
    if (!listed) {
      if (listed.error().code == Errc::kNotFound) {
        continue;
      }
      return listed.error();
    }
    std::ranges::sort(*listed, {}, &DirectoryEntry::name);
    for (const auto& entry : *listed) {
      if (!entry.is_directory && entry.name.ends_with(".json")) {
        out.push_back(directory / "config" / entry.name);
      }
    }
  }
  return out;
}

}  // namespace

Result<std::string> archive_in_json(std::string_view text) {
  const auto parsed = nlohmann::json::parse(text, nullptr, false, /*ignore_comments=*/true);
  if (parsed.is_discarded()) {
    return Error{Errc::kCorruption, "it is no JSON"};
  }
  return enabling_member(parsed, {});
}

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
  const auto unseen = [](const std::string& why) {
    return fmt::format("whether the server has an archive cannot be seen: {}", why);
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
  const auto yaml_files = read.size();
  const auto more = json_files(files, options ? application_directory(*options) : Path());
  if (!more) {
    return unseen(more.error().message);
  }
  read.insert(read.end(), more->begin(), more->end());
  for (std::size_t n = 0; n < read.size(); ++n) {
    const auto content = read_file(files, read[n]);
    if (!content && content.error().code == Errc::kNotFound) {
      continue;
    }
    if (!content) {
      return unseen(content.error().message);
    }
    const auto text = as_text(*content);
    const auto found =
        n < yaml_files ? Result<std::string>(archive_in_config(text)) : archive_in_json(text);
    if (!found) {
      return unseen(fmt::format("{}: {}", read[n].string(), found.error().message));
    }
    if (!found->empty()) {
      return says(read[n].string() + ": ", *found);
    }
  }
  return {};
}

}  // namespace verger::external
