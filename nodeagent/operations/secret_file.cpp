#include "nodeagent/operations/secret_file.h"

namespace verger::agent {

Result<void> write_secret_file(FileSystem& files, const MakePrivate& make_private, const Path& path,
                               ByteView content) {
  // What write_file_durably() writes first; it keeps the permissions of one that is there.
  const Path draft = path.string() + ".tmp";
  if (const auto left = files.remove(draft); !left && left.error().code != Errc::kNotFound) {
    return left.error();
  }
  VERGER_RETURN_IF_ERROR(files.open(draft, OpenMode::kCreateNew));
  if (const auto made = make_private ? make_private(draft) : Result<void>(); !made) {
    static_cast<void>(files.remove(draft));
    return made;
  }
  return write_file_durably(files, path, content);
}

}  // namespace verger::agent
