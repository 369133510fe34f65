#include "engine/repositories/open_store.h"

#include "engine/backup/directory_store.h"
#include "engine/backup/key_file.h"
#include "engine/object_store/s3_settings.h"
#include "engine/object_store/s3_store.h"

namespace verger::backup {
namespace {

bool is_loopback(const std::string& endpoint) {
  return endpoint.starts_with("http://127.") || endpoint.starts_with("http://localhost") ||
         endpoint.starts_with("http://[::1]");
}

Result<std::unique_ptr<BlobStore>> open_object_store(FileSystem& files,
                                                     const RepositoryConfig& config, Random& random,
                                                     Log& log,
                                                     const std::function<bool()>& stopped) {
  auto settings = object_store::s3_settings_of(files, config);
  if (!settings) {
    return settings.error().within(config.location);
  }
  settings->retry.stopped = stopped;
  if (settings->endpoint.starts_with("http://") && !is_loopback(settings->endpoint)) {
    log.warning("backups are sent to the object storage without encryption of the connection",
                {{"location", config.location}, {"endpoint", settings->endpoint}});
  }
  return std::make_unique<object_store::S3Store>(*std::move(settings), random, log);
}

/// Where the objects lie, as they are stored.
Result<std::unique_ptr<BlobStore>> open_location(FileSystem& files, const RepositoryConfig& config,
                                                 Random& random, Log& log,
                                                 const std::function<bool()>& stopped) {
  if (config.is_object_store()) {
    return open_object_store(files, config, random, log, stopped);
  }
  return std::make_unique<DirectoryStore>(files, config.location, random);
}

}  // namespace

Result<std::unique_ptr<SealedStore>> open_sealed_store(FileSystem& files,
                                                       const RepositoryConfig& config,
                                                       Clock& /*clock*/, Random& random, Log& log,
                                                       const std::function<bool()>& stopped) {
  Sealing sealing{.compression = config.compression};
  if (!config.key_file.empty()) {
    VERGER_TRY(sealing.keys, read_key_file(files, config.key_file));
  }
  VERGER_TRY(auto location, open_location(files, config, random, log, stopped));
  return std::make_unique<SealedStore>(std::move(location), std::move(sealing), random);
}

Result<std::unique_ptr<BlobStore>> open_store(FileSystem& files, const RepositoryConfig& config,
                                              Clock& clock, Random& random, Log& log,
                                              const std::function<bool()>& stopped) {
  VERGER_TRY(auto store, open_sealed_store(files, config, clock, random, log, stopped));
  return std::unique_ptr<BlobStore>(std::move(store));
}

}  // namespace verger::backup
