#include <memory>

#include "engine/base/memory_file_system.h"
#include "engine/log/chunk.h"

/// The input is a whole completed chunk file: header, records, position map, footer.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  MemoryFileSystem files;
  const Path path = "/chunk-000000.000001";
  {
    auto file = files.open(path, OpenMode::kCreateNew);
    if (!file || !(*file)->write_at(0, ByteView(reinterpret_cast<const std::byte*>(data), size))) {
      return 0;
    }
  }
  const auto chunk = log::Chunk::open_completed(files, path);
  if (!chunk) {
    return 0;
  }
  static_cast<void>((*chunk)->verify_md5());
  static_cast<void>((*chunk)->posmap());
  Bytes buffer;
  static_cast<void>((*chunk)->read_before((*chunk)->end_position(), buffer));
  auto scanner = log::ChunkScanner::open(*chunk, (*chunk)->start_position());
  if (!scanner) {
    return 0;
  }
  // Each record takes at least its framing, so a scan cannot be longer than the file.
  for (std::size_t i = 0; i <= size; ++i) {
    const auto record = scanner->next();
    if (!record || !*record) {
      return 0;
    }
  }
  __builtin_trap();
}
