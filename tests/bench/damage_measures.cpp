// A changed byte at very many positions of a small backup, of every kind of file in it.
#include <algorithm>
#include <map>
#include <set>

#include "engine/backup/backup_job.h"
#include "engine/backup/directory_store.h"
#include "engine/backup/sealed_store.h"
#include "engine/backup/verify_job.h"
#include "engine/base/memory_file_system.h"
#include "engine/tool/workload.h"
#include "tests/bench/measures.h"

namespace verger::bench {
namespace {

using nlohmann::json;

constexpr std::size_t kNamedMisses = 20;

/// A scavenged database with every kind of file, some megabytes.
Result<void> make_database(const Path& directory) {
  tool::Workload made;
  made.events = 8'000;
  made.streams = 200;
  made.size_min = 40;
  made.size_max = 400;
  made.max_count = 10;
  made.max_count_percent = 60;
  made.deleted_percent = 5;
  made.chunk_size = 64 * 1024;
  made.max_mem_table_size = 2'000;
  made.existence_filter_size = 20'000;
  VERGER_TRY(const auto written, tool::generate_workload(posix_file_system(), directory, made,
                                                         null_log(), [](std::uint64_t) {}));
  static_cast<void>(written);
  VERGER_TRY(const auto point, write_point(directory));
  VERGER_TRY(const auto scavenged, scavenge(directory, 1));
  static_cast<void>(point);
  static_cast<void>(scavenged);
  return {};
}

/// One object of a repository, and how its damage is noticed.
struct StoredObject {
  std::string kind;
  Path path;
  std::uint64_t size = 0;
  std::string file{};          ///< of the database; empty: a document
  backup::Manifest needing{};  ///< the manifest, with what has this content alone
};

class DamagedBackup {
 public:
  /// Makes a backup of `database` in memory.
  static Result<std::unique_ptr<DamagedBackup>> make(const Path& database, backup::Sealing sealing,
                                                     std::uint64_t seed) {
    auto out = std::unique_ptr<DamagedBackup>(new DamagedBackup(std::move(sealing), seed));
    VERGER_RETURN_IF_ERROR(out->disk_.import_tree(posix_file_system(), database, "/db"));
    VERGER_RETURN_IF_ERROR(out->back_up());
    VERGER_RETURN_IF_ERROR(out->find_objects());
    return out;
  }

  /// Changes one byte at each of about `positions` positions, one at a time: all of a small object,
  /// and of larger ones as many of each, spread evenly.
  Result<json> search(std::uint64_t positions) {
    std::ranges::sort(objects_, {}, &StoredObject::size);
    auto left = positions;
    for (std::size_t i = 0; i < objects_.size(); ++i) {
      const auto share = std::min(objects_[i].size, left / (objects_.size() - i));
      VERGER_RETURN_IF_ERROR(search_in(objects_[i], share));
      left -= share;
    }
    VERGER_TRY(const auto intact, intact_again());
    auto kinds = json::object();
    std::uint64_t changed = 0;
    std::uint64_t found = 0;
    for (const auto& [kind, count] : kinds_) {
      kinds[kind] = {{"objects", count.objects},
                     {"bytes", count.bytes},
                     {"changed", count.changed},
                     {"found", count.found}};
      changed += count.changed;
      found += count.found;
    }
    return json{{"changed", changed}, {"found", found},   {"missed", missed_},
                {"kinds", kinds},     {"intact", intact}, {"objects", objects_.size()}};
  }

 private:
  DamagedBackup(backup::Sealing sealing, std::uint64_t seed)
      : sealing_(std::move(sealing)), random_(seed) {}

  /// A new one for each look: none remembers what it has read.
  std::unique_ptr<backup::SealedStore> store() {
    return std::make_unique<backup::SealedStore>(
        std::make_unique<backup::DirectoryStore>(disk_, kRepository, random_), sealing_, random_);
  }

  Result<void> back_up() {
    const auto target = store();
    VERGER_TRY(auto repository,
               backup::Repository::open(*target, backup::Repository::Create::kIfMissing, random_));
    backup::BackupOptions options;
    options.source.directory = "/db";
    options.node.node = "bench";
    backup::BackupJob job(disk_, repository, std::move(options), system_clock(), random_,
                          null_log());
    VERGER_RETURN_IF_ERROR(run_job(job));
    manifest_ = job.manifest();
    return {};
  }

  Result<void> find_objects() {
    const auto target = store();
    const backup::DirectoryStore place(disk_, kRepository, random_);
    std::set<Sha256Digest> seen;
    for (const auto& file : manifest_.files) {
      if (!seen.insert(file.sha256).second) {
        continue;
      }
      StoredObject object{.kind = std::string(backup::to_string(file.kind)),
                          .path = place.blob_path(target->stored_name(file.sha256)),
                          .file = file.path,
                          .needing = manifest_};
      std::erase_if(object.needing.files, [&file](const backup::BackedUpFile& other) {
        return other.sha256 != file.sha256;
      });
      objects_.push_back(std::move(object));
    }
    objects_.push_back(
        {.kind = "manifest", .path = Path(kRepository) / "generations" / manifest_.id});
    objects_.push_back(
        {.kind = "mark of the repository", .path = Path(kRepository) / "repository"});
    for (auto& object : objects_) {
      VERGER_TRY(object.size, disk_.file_size(object.path));
    }
    return {};
  }

  /// `at` strata of equal length, one position in each.
  Result<void> search_in(const StoredObject& object, std::uint64_t positions) {
    auto& count = kinds_[object.kind];
    ++count.objects;
    count.bytes += object.size;
    for (std::uint64_t i = 0; i < positions; ++i) {
      const auto from = object.size * i / positions;
      const auto behind = object.size * (i + 1) / positions;
      const auto at = from + random_.below(behind - from);
      constexpr std::uint64_t kByteValues = 256;
      const auto bits = static_cast<std::byte>(1 + random_.below(kByteValues - 1));
      VERGER_RETURN_IF_ERROR(change(object.path, at, bits));
      const bool found = is_noticed(object);
      VERGER_RETURN_IF_ERROR(change(object.path, at, bits));
      ++count.changed;
      count.found += found ? 1 : 0;
      if (!found && missed_.size() < kNamedMisses) {
        missed_.push_back({{"object", object.path.string()}, {"at", at}});
      }
    }
    return {};
  }

  Result<void> change(const Path& path, std::uint64_t at, std::byte bits) {
    VERGER_TRY(const auto file, disk_.open(path, OpenMode::kReadWrite));
    std::byte one[1];
    VERGER_RETURN_IF_ERROR(file->read_exact(at, one));
    one[0] ^= bits;
    return file->write_at(at, one);
  }

  /// As `verger-db backup verify` looks, which reads each file alone, or as opening the repository.
  bool is_noticed(const StoredObject& object) {
    const auto target = store();
    if (!object.file.empty()) {
      backup::VerifyBytesJob job(*target, object.needing);
      return run_job(job).has_value() && job.damage().size() == 1 &&
             job.damage().front().path == object.needing.files.front().path;
    }
    const auto repository = backup::Repository::open(*target, backup::Repository::Create::kNo);
    return !repository.has_value() || !repository->load(manifest_.id).has_value();
  }

  /// That nothing is noticed once every byte is as it was: the search has changed nothing else.
  Result<bool> intact_again() {
    const auto target = store();
    VERGER_TRY(const auto repository,
               backup::Repository::open(*target, backup::Repository::Create::kNo));
    VERGER_TRY(const auto manifest, repository.load(manifest_.id));
    backup::VerifyBytesJob job(*target, manifest);
    VERGER_RETURN_IF_ERROR(run_job(job));
    return manifest == manifest_ && job.damage().empty();
  }

  struct Count {
    std::uint64_t objects = 0;
    std::uint64_t bytes = 0;
    std::uint64_t changed = 0;
    std::uint64_t found = 0;
  };
  static constexpr const char* kRepository = "/repository";

  MemoryFileSystem disk_;
  backup::Sealing sealing_;
  SeededRandom random_;
  backup::Manifest manifest_;
  std::vector<StoredObject> objects_;
  std::map<std::string, Count> kinds_;
  json missed_ = json::array();
};

}  // namespace

Result<json> find_changed_bytes(const Path& directory, std::uint64_t positions,
                                std::uint64_t seed) {
  const auto database = directory / "database";
  VERGER_RETURN_IF_ERROR(make_database(database));
  VERGER_TRY(const auto plain, DamagedBackup::make(database, {}, seed));
  VERGER_TRY(const auto plainly, plain->search(positions));
  SeededRandom of_keys(seed);
  VERGER_TRY(const auto sealed, DamagedBackup::make(database,
                                                    {.compression = backup::Compression::kZstd,
                                                     .keys = backup::KeyRing::make(of_keys)},
                                                    seed));
  VERGER_TRY(const auto sealedly, sealed->search(positions));
  return json{{"plain", plainly}, {"compressed and encrypted", sealedly}};
}

}  // namespace verger::bench
