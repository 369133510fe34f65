#include <exception>

#include "engine/base/memory_file_system.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/scavenge/run.h"

namespace {

using namespace verger;  // NOLINT(google-build-using-namespace)

const Path kDirectory = "/db";

test::BuilderOptions small() {
  test::BuilderOptions options;
  options.chunk_size = 4096;
  options.max_mem_table_size = 10;
  return options;
}

test::ScavengeRun small_run() {
  test::ScavengeRun run;
  run.chunk_size = small().chunk_size;
  run.max_mem_table_size = small().max_mem_table_size;
  return run;
}

/// A small scavenged database with writes and a second point after the scavenge.
std::unique_ptr<MemoryFileSystem> small_database() {
  auto files = std::make_unique<MemoryFileSystem>();
  {
    test::DatabaseBuilder builder(*files, kDirectory, small());
    builder.metadata("a", R"({"$maxCount":2})");
    builder.metadata("b", R"({"$maxAge":5})");
    for (int n = 0; n < 12; ++n) {
      builder.write("a", 2);
      builder.write("b");
    }
    builder.transaction("b", 2);
    builder.hard_delete("a");
    builder.point();
    builder.write("c", 3);
  }
  auto run = small_run();
  run.options.stop_after = {.stage = scavenge::Stage::kExecutingChunks, .nth = 2};
  static_cast<void>(test::run_scavenge(*files, kDirectory, run));
  return files;
}

struct Start {
  std::unique_ptr<MemoryFileSystem> files = small_database();
  std::vector<Path> names;

  Start() {
    for (const auto* folder : {"", "index", "index/scavenging", "index/stream-existence"}) {
      const auto entries = files->list(kDirectory / folder);
      if (!entries) {
        continue;
      }
      for (const auto& entry : *entries) {
        if (!entry.is_directory) {
          names.push_back(kDirectory / folder / entry.name);
        }
      }
    }
  }
};

/// Five bytes: which file, what to do with it, where, with which value.
void change(MemoryFileSystem& files, const std::vector<Path>& names, ByteView edit) {
  const auto& name = names[std::to_integer<std::size_t>(edit[0]) % names.size()];
  const auto place =
      std::to_integer<std::uint64_t>(edit[2]) * 256 + std::to_integer<std::uint64_t>(edit[3]);
  static_cast<void>(files.set_read_only(name, false));
  auto file = files.open(name, OpenMode::kReadWrite);
  if (!file) {
    return;
  }
  const auto size = (*file)->size().value_or(0);
  const auto at = size == 0 ? 0 : place % size;
  switch (std::to_integer<int>(edit[1]) % 6) {
    case 0:
      static_cast<void>((*file)->resize(at));
      return;
    case 1:
      file->reset();
      static_cast<void>(files.remove(name));
      return;
    case 2:  // from the end: footers
      static_cast<void>((*file)->write_at(size - std::min<std::uint64_t>(size, 1 + place % 160),
                                          edit.subspan(4, 1)));
      return;
    case 3:
      static_cast<void>((*file)->write_at(size, edit.subspan(0, 5)));
      return;
    default:
      static_cast<void>((*file)->write_at(at, edit.subspan(4, 1)));
  }
}

void read_everything(FileSystem& files) {
  const auto database = test::open_database(files, kDirectory, small_run(), log::Access::kReadOnly);
  if (!database) {
    return;
  }
  for (const auto* stream : {"a", "b", "c", "$$a", "$$b", "$scavengePoints"}) {
    static_cast<void>((*database)->read_forward(stream, EventNumber(0), 50));
    static_cast<void>((*database)->read_backward(stream, kDeletedStream, 50));
  }
  static_cast<void>((*database)->read_all_forward({LogPosition(0), LogPosition(0)}, 200));
  static_cast<void>(streams::scavenge_points(**database));
  for (const auto& chunk : (*database)->transaction_log().chunks()) {
    static_cast<void>(chunk->posmap());
    static_cast<void>(chunk->verify_md5());
  }
}

}  // namespace

/// The input is a list of changes to the files of a small database. With any of them it is read,
/// opened for writing and scavenged without a crash, or refused.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const Start start;
  const auto files = start.files->clone();
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  for (std::size_t at = 0; at + 5 <= size && at < 100; at += 5) {
    change(*files, start.names, bytes.subspan(at, 5));
  }
  read_everything(*files);
  static_cast<void>(test::run_scavenge(*files, kDirectory, small_run()));
  read_everything(*files);
  return 0;
}
