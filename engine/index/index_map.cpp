#include "engine/index/index_map.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include "engine/base/digest.h"
#include "engine/base/failpoint.h"
#include "engine/base/number_from_text.h"

namespace verger::index {
namespace {

constexpr std::size_t kHashDigits = 32;

Error corrupt(std::string what) { return Error{Errc::kCorruption, std::move(what)}; }

std::string upper_hex_md5(std::string_view text) {
  auto digits = to_hex(md5(as_bytes(text)));
  for (auto& digit : digits) {
    digit = digit >= 'a' && digit <= 'f' ? static_cast<char>(digit - 'a' + 'A') : digit;
  }
  return digits;
}

/// Takes the next line, which may end in LF or CR LF; nullopt at the end of the text.
std::optional<std::string_view> take_line(std::string_view& text) {
  if (text.empty()) {
    return std::nullopt;
  }
  const auto end = text.find('\n');
  auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

Result<IndexMap::Line> parse_table_line(std::string_view line) {
  const auto first = line.find(',');
  const auto second = first == std::string_view::npos ? first : line.find(',', first + 1);
  if (second == std::string_view::npos) {
    return corrupt(fmt::format("'{}' is not level,position,file", line));
  }
  const auto level = number_from_text<int>(line.substr(0, first));
  const auto position = number_from_text<int>(line.substr(first + 1, second - first - 1));
  const auto file = line.substr(second + 1);
  // A name that leads out of the directory, or that would be read back otherwise than it was
  // written, is not one a server writes.
  const bool plain =
      !file.empty() && file != "." && file != ".." &&
      std::ranges::none_of(file, [](char c) { return c == '/' || (c >= 0 && c < ' '); });
  if (!level || !position || *level < 0 || *position < 0 || !plain) {
    return corrupt(fmt::format("'{}' is not level,position,file", line));
  }
  return IndexMap::Line{*level, *position, std::string(file)};
}

}  // namespace

Result<IndexMap> parse_index_map(std::string_view text) {
  if (text.size() < kHashDigits ||
      upper_hex_md5(text.substr(kHashDigits)) != text.substr(0, kHashDigits)) {
    return corrupt("the hash in line 1 is not that of the rest");
  }
  take_line(text);
  const auto version_line = take_line(text);
  const auto version = version_line ? number_from_text<int>(*version_line) : std::nullopt;
  if (!version) {
    return corrupt("line 2 holds no format version");
  }
  const auto checkpoints = take_line(text).value_or("");
  const auto slash = checkpoints.find('/');
  const auto prepare = number_from_text<std::int64_t>(checkpoints.substr(0, slash));
  const auto commit = slash == std::string_view::npos
                          ? std::nullopt
                          : number_from_text<std::int64_t>(checkpoints.substr(slash + 1));
  if (!prepare || !commit || *prepare < -1 || *commit < -1) {
    return corrupt(fmt::format("line 3, '{}', holds no checkpoints", checkpoints));
  }
  IndexMap map;
  map.prepare_checkpoint = LogPosition(*prepare);
  map.commit_checkpoint = LogPosition(*commit);
  if (*version > 1) {
    const auto level = number_from_text<std::int32_t>(take_line(text).value_or(""));
    if (!level) {
      return corrupt("line 4 holds no maximum auto-merge level");
    }
    map.max_auto_merge_level = *level;
  }
  while (const auto line = take_line(text)) {
    if (line->empty() && text.empty()) {
      break;
    }
    VERGER_TRY(auto table, parse_table_line(*line));
    if (*prepare < 0 || *commit < 0) {
      return corrupt(
          fmt::format("lists table {} although its checkpoints are {}", table.file, checkpoints));
    }
    map.tables.push_back(std::move(table));
  }
  std::ranges::sort(map.tables, {}, [](const IndexMap::Line& line) {
    return std::pair(line.level, line.position);
  });
  const IndexMap::Line* previous = nullptr;
  for (const auto& line : map.tables) {
    const bool same_level = previous != nullptr && previous->level == line.level;
    if (line.position != (same_level ? previous->position + 1 : 0)) {
      return corrupt(fmt::format("level {} has no table, or two, at position {}", line.level,
                                 same_level ? previous->position + 1 : 0));
    }
    previous = &line;
  }
  return map;
}

std::string format_index_map(const IndexMap& map) {
  auto rest = fmt::format("\n2\n{}/{}\n{}\n", map.prepare_checkpoint, map.commit_checkpoint,
                          map.max_auto_merge_level);
  for (const auto& line : map.tables) {
    rest += fmt::format("{},{},{}\n", line.level, line.position, line.file);
  }
  return upper_hex_md5(rest) + rest;
}

Result<IndexMap> load_index_map(FileSystem& files, const Path& directory) {
  const auto path = directory / kIndexMapName;
  const auto content = read_file(files, path);
  if (!content) {
    return content.error().code == Errc::kNotFound ? Result<IndexMap>(IndexMap{})
                                                   : Result<IndexMap>(content.error());
  }
  auto map = parse_index_map(as_text(*content));
  if (!map) {
    return map.error().within(path.string());
  }
  return map;
}

Result<void> save_index_map(FileSystem& files, const Path& directory, const IndexMap& map,
                            Random& random) {
  // The server deletes the old map first, and rebuilds everything after a crash between the two;
  // renaming over it leaves the old or the new one.
  const auto temporary =
      directory / fmt::format("{}.{}.indexmap.tmp", kIndexMapName, random.uuid().to_string());
  {
    VERGER_TRY(const auto file, files.open(temporary, OpenMode::kCreateNew));
    VERGER_RETURN_IF_ERROR(file->write_at(0, as_bytes(format_index_map(map))));
    VERGER_RETURN_IF_ERROR(file->sync());
  }
  VERGER_FAILPOINT("index.map.before-rename");
  VERGER_RETURN_IF_ERROR(files.rename(temporary, directory / kIndexMapName));
  return files.sync_directory(directory);
}

}  // namespace verger::index
