#include "engine/base/memory_file_system.h"
#include "engine/index/ptable.h"

/// The input is a whole PTable file.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  MemoryFileSystem files;
  const Path path = "/table";
  {
    auto file = files.open(path, OpenMode::kCreateNew);
    if (!file || !(*file)->write_at(0, ByteView(reinterpret_cast<const std::byte*>(data), size))) {
      return 0;
    }
  }
  const auto table = index::PTable::open(files, path, 16);
  if (!table) {
    return 0;
  }
  std::vector<index::IndexEntry> found;
  const StreamHash hash(0x97be6233ad91dacbU);
  static_cast<void>((*table)->range(hash, EventNumber(0), kDeletedStream, 100, found));
  static_cast<void>((*table)->latest(hash));
  static_cast<void>((*table)->oldest(hash));
  static_cast<void>((*table)->next(hash, EventNumber(1)));
  static_cast<void>((*table)->verify_md5());
  index::PTableScanner scanner(*table);
  for (std::size_t i = 0; i <= size; ++i) {
    const auto entry = scanner.next();
    if (!entry || !*entry) {
      return 0;
    }
  }
  __builtin_trap();
}
