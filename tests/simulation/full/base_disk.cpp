#include "tests/simulation/full/base_disk.h"

#include <array>
#include <fmt/format.h>
#include <memory>
#include <stdexcept>

#include "tests/support/database/database_builder.h"

namespace verger::sim {
namespace {

void fill(test::DatabaseBuilder& builder, int first, int rounds) {
  builder.metadata("capped", R"({"$maxCount":2})");
  for (int round = first; round < first + rounds; ++round) {
    builder.write("kept", 2, 120);
    builder.write("capped", 4, 160);
    builder.write(fmt::format("gone-{}", round), 3, 140);
    builder.write(fmt::format("soft-{}", round), 2, 100);
    if (round % 2 == 1) {
      builder.hard_delete(fmt::format("gone-{}", round));
      builder.soft_delete(fmt::format("soft-{}", round));
    }
    if (round % 3 == 0) {
      builder.write("cut", 3, 90);
      builder.metadata("cut", fmt::format(R"({{"$tb":{}}})", round));
    }
  }
}

std::unique_ptr<MemoryFileSystem> build(StartingPoint point) {
  auto files = std::make_unique<MemoryFileSystem>();
  test::BuilderOptions options;
  options.seed = 7 + static_cast<std::uint64_t>(point);
  test::DatabaseBuilder builder(*files, "/db", options);
  // The log of a cluster begins with an epoch: it shows which nodes belong together.
  if (const auto epoch = builder.database().transaction_log().append_epoch(EpochNumber(0),
                                                                           builder.random().uuid());
      !epoch) {
    throw std::runtime_error(epoch.error().message);
  }
  fill(builder, 0, point == StartingPoint::kLarger ? 20 : 10);
  if (point == StartingPoint::kUnreachedPoint) {
    builder.point();
    fill(builder, 10, 4);
  }
  builder.close();
  return files;
}

}  // namespace

const MemoryFileSystem& base_disk(StartingPoint point) {
  static std::array<std::unique_ptr<MemoryFileSystem>, kStartingPoints> disks;
  auto& disk = disks.at(static_cast<std::size_t>(point));
  if (!disk) {
    disk = build(point);
  }
  return *disk;
}

}  // namespace verger::sim
