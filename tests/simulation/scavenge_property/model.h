#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/streams/event_store.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {

/// What a scavenge finds.
struct ModelInput {
  std::vector<ChunkSnapshot> chunks;
  /// Of all tables and of the memory.
  std::vector<index::IndexEntry> entries;
  std::vector<index::IndexEntry> in_tables = {};
  /// The index's own answer to "the last number before the point" of a stream, kept by name or by
  /// hash. Where numbers are out of order it depends on where a binary search looks.
  std::function<std::optional<std::int64_t>(const std::string&, bool by_name)> last_of;
};

/// What it has to leave.
struct ModelOutcome {
  std::map<std::int64_t, std::string> records;
  std::vector<index::IndexEntry> entries;                     ///< sorted
  std::vector<std::pair<std::int32_t, std::int32_t>> layout;  ///< first and last of each chunk file
};

/// The rules of docs/formats/scavenge.md once more, as plainly as they can be said: everything in
/// maps, no files, stages, batches or threads. It keeps between scavenges what scavenging.db does.
class ScavengeModel {
 public:
  ScavengeModel(index::HashFunction hash, std::int64_t chunk_size)
      : hash_(hash), chunk_size_(chunk_size) {}
  /// From the next scavenge on.
  void ignore_hard_deletes(bool unsafe) { unsafe_ = unsafe; }

  ModelOutcome scavenge(const ModelInput& input, const streams::ScavengePoint& point, bool merge);
  /// The tables of scavenging.db, without checkpoint and schema version.
  StateRows rows() const;
  /// An operator deleted scavenging.db.
  void forget() { *this = ScavengeModel(hash_, chunk_size_); }

 private:
  using Number = std::int64_t;
  struct Original {
    bool tombstoned = false;
    std::optional<Number> age, count, truncate;
    Number discard = 0, maybe = 0;
    int status = 1;
  };
  struct Metastream {
    bool tombstoned = false;
    std::optional<Number> discard;
  };
  struct Record {
    Number position = 0, end = 0, number = 0, time = 0;
    bool prepare = false, tombstone = false, begins = false, committed = false, old = false;
    std::string stream, data;
  };
  template <class Row>
  struct Table {
    std::map<Number, Row> by_hash;
    std::map<std::string, Row> by_name;
  };
  using Info = std::pair<Number, Number>;  ///< number, position

  void load(const ModelInput& input);
  void note(const std::string& stream);
  template <class Row>
  Row& row(Table<Row>& table, const std::string& stream);
  template <class Row>
  const Row* find(const Table<Row>& table, const std::string& stream) const;
  Number key(const std::string& stream) const;
  /// Below the point, ascending; `name` distinguishes colliding streams.
  std::vector<Info> infos(Number hash, const std::string* name) const;
  std::vector<Info> infos(const std::string& stream) const;
  void accumulate(const ModelInput& input);
  void add_metadata(const Record& record);
  void add_tombstone(const Record& record, const ModelInput& input);
  void calculate(Original& row, const std::vector<Info>& infos, Number last);
  bool keeps(const Record& record) const;
  bool keeps(const index::IndexEntry& entry, const ModelOutcome& outcome) const;
  void clean();
  int chunk_of(Number position) const { return static_cast<int>(position / chunk_size_); }

  index::HashFunction hash_;
  std::int64_t chunk_size_;
  bool unsafe_ = false;

  std::map<Number, std::string> users_;
  std::set<std::string> collisions_;
  Table<Original> originals_;
  Table<Metastream> metastreams_;
  std::map<int, std::pair<Number, Number>> ranges_;
  std::map<int, double> weights_;
  std::optional<int> done_chunk_;

  streams::ScavengePoint point_;
  std::map<Number, Record> log_;
  std::map<Number, std::vector<Info>> index_;
};

}  // namespace verger::test
