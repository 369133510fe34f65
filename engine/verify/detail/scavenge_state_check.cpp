#include "engine/verify/detail/scavenge_state_check.h"

#include <fmt/format.h>

#include "engine/base/sqlite.h"
#include "engine/base/sqlite_copy.h"
#include "engine/scavenge/scavenge_state.h"

namespace verger::verify::detail {
namespace {

/// Removes the copy with what SQLite made beside it.
class Copy {
 public:
  Copy(FileSystem& files, Path path) : files_(files), path_(std::move(path)) {}
  ~Copy() {
    for (const auto* suffix : {"", "-wal", "-journal"}) {
      // What cannot be removed only costs space in a directory for temporary files.
      static_cast<void>(files_.remove(path_.string() + suffix).has_value());
    }
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  [[nodiscard]] const Path& path() const { return path_; }

 private:
  FileSystem& files_;
  Path path_;
};

/// "ok", or what is wrong.
Result<std::string> quick_check(FileSystem& files, const Path& path) {
  VERGER_TRY(auto database, sqlite::Database::open(files, path, {.own_state = false}));
  VERGER_TRY(const auto text, database.query_text("PRAGMA quick_check(1)"));
  return text.value_or("no answer");
}

}  // namespace

Result<void> check_scavenge_state(FileSystem& files, Random& random, const Path& index_directory,
                                  const Path& scratch, Findings& findings) {
  const auto path = scavenge::ScavengeState::path_in(index_directory);
  VERGER_TRY(const bool there, files.exists(path));
  if (!there) {
    return {};
  }
  VERGER_RETURN_IF_ERROR(files.make_directories(scratch));
  const Copy copy(files, scratch / ("verger-verify-" + random.uuid().to_string() + ".db"));
  const auto copied = sqlite::copy_database(files, path, files, copy.path());
  if (!copied && copied.error().code == Errc::kUnavailable) {
    findings.note(path, "not looked at: " + copied.error().message);
    return {};
  }
  VERGER_RETURN_IF_ERROR(copied);
  const auto checked = quick_check(files, copy.path());
  if (!checked && checked.error().code != Errc::kCorruption) {
    return checked.error();
  }
  if (!checked || *checked != "ok") {
    findings.damage(path, std::nullopt,
                    fmt::format("{}; without the directory {} the next scavenge begins anew",
                                checked ? *checked : std::string("SQLite cannot read it"),
                                path.parent_path().string()));
  }
  return {};
}

}  // namespace verger::verify::detail
