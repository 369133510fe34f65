#include "nodeagent/operations/secret_file.h"

namespace verger::agent {

Result<void> write_secret_file(FileSystem& files, const MakePrivate& make_private, const Path& path,
                               ByteView content) {
  const Path draft = path.string() + ".tmp";
  auto written = [&]() -> Result<void> {
    if (const auto left = files.remove(draft); !left && left.error().code != Errc::kNotFound) {
      return left.error();
    }
    VERGER_TRY(const auto file, files.open(draft, OpenMode::kCreateNew));
    if (make_private) {
      VERGER_RETURN_IF_ERROR(make_private(draft));
    }
    VERGER_RETURN_IF_ERROR(file->write_at(0, content));
    VERGER_RETURN_IF_ERROR(file->sync());
    VERGER_RETURN_IF_ERROR(files.rename(draft, path));
    return files.sync_directory(path.parent_path());
  }();
  if (!written) {
    static_cast<void>(files.remove(draft));
  }
  return written;
}

}  // namespace verger::agent
