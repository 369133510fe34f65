#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/log/transaction_log.h"
#include "engine/redaction/plaintext_digests.h"
#include "engine/redaction/redaction_list.h"
#include "engine/redaction/redaction_plan.h"
#include "nodeagent/operations/operation_journal.h"
#include "nodeagent/operations/redaction/redaction_result.h"
#include "nodeagent/operations/secret_file.h"

namespace verger::agent {

/// What redactions have noted of the texts that they blank: one file for each list of redactions,
/// "<SHA-256 of the list>.noted", which its owner alone can read. It holds keyed digests and their
/// key, so guesses of a text can be tried against it: it goes once the search has ended and its
/// result is in the journal, and after kKept in any case. Safe from any thread.
/// Format: docs/formats/noted-texts.md.
class NotedTextStore {
 public:
  struct Environment {
    FileSystem& files;
    Clock& clock;
    Log& log;
    MakePrivate make_private{};
  };
  /// As long as a run may be paused between two attempts without losing its proof.
  static constexpr std::chrono::hours kKept{72};

  NotedTextStore(Path directory, Environment environment);

  /// A chunk file as it was before its records were blanked.
  struct ChunkBefore {
    std::string file{};
    Md5Digest md5{};
    LogPosition record;  ///< of one of its records that were to be blanked
    std::uint32_t records = 0;
  };
  struct Entry {
    std::set<LogPosition> positions{};  ///< records whose texts are in `digests`
    std::vector<ChunkBefore> chunks{};
    redaction::PlaintextDigests digests;
  };
  /// Errors: kNotFound; kCorruption, kUnsupported (the file is removed); kIo.
  Result<Entry> load(const std::string& list) const;
  /// Durable when it returns. Errors: kNoSpace, kIo.
  Result<void> save(const std::string& list, const Entry& entry);
  /// What cannot be removed now is tried again by collect().
  void forget(const std::string& list);
  /// Removes what is too old, and what a crash left half written.
  void collect();

 private:
  [[nodiscard]] Path path_of(const std::string& list) const;
  Result<void> remove(const Path& path) const;

  Path directory_;
  Environment environment_;
  mutable std::mutex guard_;
};

/// The texts of one redaction. They are noted, and kept where the next agent finds them, before the
/// first one is blanked: an attempt that was killed in between costs no proof.
class NotedTexts {
 public:
  /// `store`: null: they live as long as this object. What `random` and `log` refer to outlives it.
  NotedTexts(std::shared_ptr<NotedTextStore> store,
             const std::vector<redaction::ListedRedaction>& list, Random& random, Log& log);

  /// Takes what a former attempt has noted, and adds the records of the plan that are not blanked
  /// yet. Into the result: how many records there are, were redacted before, and have texts that
  /// can be searched for. Errors: those of reading; where the texts cannot be kept that is logged.
  Result<void> note(const log::TransactionLog& log, const redaction::RedactionPlan& plan,
                    RedactionResult& into);
  /// Adds the chunk files that a former attempt has replaced to those of the result.
  void complete_chunks(const log::TransactionLog& log, RedactionResult& into) const;
  [[nodiscard]] const redaction::PlaintextDigests& digests() const { return noted_.digests; }
  [[nodiscard]] bool can_search() const { return noted_.digests.searchable_count() > 0; }

 private:
  /// True: there was something to note.
  Result<bool> note_chunk(const log::TransactionLog& log, const redaction::RedactionPlan& plan,
                          const redaction::PlannedChunk& chunk);

  std::shared_ptr<NotedTextStore> store_;
  std::string list_;
  Log& out_;
  NotedTextStore::Entry noted_;
  bool looked_ = false;
};

/// Of the list in the operation's parameters, where it has one: its result is in the journal. The
/// look at the end of a run has the list, too, and so removes what its attempts have left.
void forget_texts(NotedTextStore& store, const OperationRecord& record);

}  // namespace verger::agent
