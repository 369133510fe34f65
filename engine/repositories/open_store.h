#pragma once

#include <functional>
#include <memory>

#include "engine/backup/blob_store.h"
#include "engine/backup/repository_config.h"
#include "engine/backup/sealed_store.h"
#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/random.h"

namespace verger::backup {

/// The store of a repository, as its configuration says. Changes nothing there. The references
/// outlive the store. `stopped`: once it says so, no request to object storage is repeated
/// (kCancelled); called from any thread. Errors: kInvalidArgument, kNotFound, kRefused (a file of
/// the configuration), kUnsupported.
Result<std::unique_ptr<BlobStore>> open_store(FileSystem& files, const RepositoryConfig& config,
                                              Clock& clock, Random& random, Log& log,
                                              const std::function<bool()>& stopped = {});
/// The same, with what only stores that seal have.
Result<std::unique_ptr<SealedStore>> open_sealed_store(FileSystem& files,
                                                       const RepositoryConfig& config, Clock& clock,
                                                       Random& random, Log& log,
                                                       const std::function<bool()>& stopped = {});

}  // namespace verger::backup
