#pragma once

#include <memory>

#include "engine/backup/blob_store.h"
#include "engine/backup/manifest.h"
#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/job.h"
#include "engine/base/log.h"
#include "engine/base/random.h"

namespace verger::backup {

/// The digests of a generation, from the store. One thread.
class GenerationDigestJob final : public Job {
 public:
  /// All but the manifest outlive it. The readable digest needs some 60 bytes of memory an event.
  GenerationDigestJob(FileSystem& files, BlobStore& store, const Manifest& manifest, bool readable,
                      Clock& clock, Random& random, Log& log);
  ~GenerationDigestJob() override;
  Result<StepOutcome> step(Budget budget) override;
  /// Once it is done.
  [[nodiscard]] const BackupDigests& digests() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace verger::backup
