#include "engine/base/memory_file_system.h"
#include "engine/index/bloom_filter.h"
#include "engine/index/existence_filter.h"

/// The input is a bloom filter file; its first bytes serve as the checkpoint beside it, too.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  MemoryFileSystem files;
  const Path directory = "/index/stream-existence";
  const auto make = [&](const char* name, ByteView content) {
    auto file = files.open(directory / name, OpenMode::kCreateNew);
    return file && (*file)->write_at(0, content);
  };
  if (!files.make_directories(directory) || !make("streamExistenceFilter.dat", bytes) ||
      !make("streamExistenceFilter.chk", bytes.first(size < 8 ? size : 8))) {
    return 0;
  }
  if (auto filter = index::BloomFilter::open(files, directory / "streamExistenceFilter.dat")) {
    static_cast<void>((*filter)->may_contain(StreamHash(0x97be6233ad91dacbU)));
    static_cast<void>((*filter)->damaged_lines());
  }
  index::ExistenceFilter existence(files, "/index", 10'000);
  if (existence.load()) {
    static_cast<void>(existence.open_filter());
    static_cast<void>(
        existence.add({StreamHash(1), StreamHash(0xffffffffffffffffU)}, LogPosition(1'000'000)));
    static_cast<void>(existence.lower(LogPosition(100)));
  }
  return 0;
}
