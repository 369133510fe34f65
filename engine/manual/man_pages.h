#pragma once

#include <map>
#include <string>
#include <string_view>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace CLI {
class App;
}  // namespace CLI

namespace verger {

/// Pages in roff by file name ("verger-db-info.1").
using ManPages = std::map<std::string, std::string>;

/// The manual pages of a program and all its commands, made from the same text as `--help`.
/// `made_by`: the command that writes them. `section`: of the manual; 1: commands, 8: programs for
/// the administration of a machine.
[[nodiscard]] ManPages man_pages(const CLI::App& program, std::string_view made_by,
                                 int section = 1);

/// Writes them to `directory`, which is made when missing. Errors: kIo, kNoSpace.
Result<void> write_man_pages(FileSystem& files, const ManPages& pages, const Path& directory);

}  // namespace verger
