#include "tests/simulation/scavenge_property/model.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include <nlohmann/json.hpp>

#include "engine/log/record.h"

namespace verger::test {
namespace {

constexpr auto kMax = std::numeric_limits<std::int64_t>::max();

bool is_meta(const std::string& stream) { return stream.starts_with("$$"); }

/// The limit of that name: absent, or a number above `least`. False when it has a wrong type.
bool take(const nlohmann::json& json, const char* name, std::int64_t least,
          std::optional<std::int64_t>& limit) {
  const auto found = json.find(name);
  if (found == json.end()) {
    return true;
  }
  if (!found->is_number_integer()) {
    return false;
  }
  if (found->get<std::int64_t>() > least) {
    limit = found->get<std::int64_t>();
  }
  return true;
}

bool has_valid_acl(const nlohmann::json& json) {
  const auto acl = json.find("$acl");
  const auto known = {"$r", "$w", "$d", "$mr", "$mw"};
  return acl == json.end() ||
         (acl->is_object() && std::ranges::all_of(acl->items(), [&](const auto& member) {
            return std::ranges::find(known, member.key()) != known.end() &&
                   (member.value().is_string() || member.value().is_array());
          }));
}

}  // namespace

ModelOutcome ScavengeModel::scavenge(const ModelInput& input, const streams::ScavengePoint& point,
                                     bool merge) {
  point_ = point;
  load(input);
  accumulate(input);
  // Calculate: every stream that is active, each from scratch.
  for (auto& [name, row] : originals_.by_name) {
    calculate(row, infos(key(name), &name), input.last_of(name, true).value_or(-1));
  }
  for (auto& [hash, row] : originals_.by_hash) {
    const auto last = input.last_of(users_.at(hash), false);
    calculate(row, infos(hash, nullptr), last.value_or(-1));
  }
  // Execute chunks.
  ModelOutcome outcome;
  std::vector<Number> sizes;
  for (const auto& chunk : input.chunks) {
    double weight = 0;
    const auto first = weights_.lower_bound(chunk.start);
    const auto last = weights_.upper_bound(chunk.end);
    std::for_each(first, last, [&](const auto& entry) { weight += entry.second; });
    const bool execute =
        chunk.start * chunk_size_ < point.position.value() && (weight > point.threshold || unsafe_);
    sizes.push_back(0);
    for (const auto& [position, framed] : chunk.records) {
      if (!execute || keeps(log_.at(position))) {
        outcome.records[position] = framed;
        sizes.back() += static_cast<Number>(framed.size());
      }
    }
    if (execute) {
      weights_.erase(first, last);
    }
    outcome.layout.emplace_back(chunk.start, chunk.end);
  }
  // Merge neighbours that fit into one chunk.
  auto completed = static_cast<std::size_t>(
      std::ranges::count_if(input.chunks, [](const auto& chunk) { return chunk.completed; }));
  for (std::size_t n = 0; merge && n + 1 < completed;) {
    if (sizes[n] + sizes[n + 1] > chunk_size_) {
      ++n;
      continue;
    }
    sizes[n] += sizes[n + 1];
    outcome.layout[n].second = outcome.layout[n + 1].second;
    --completed;
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(n) + 1);
    outcome.layout.erase(outcome.layout.begin() + static_cast<std::ptrdiff_t>(n) + 1);
  }
  // Execute the index.
  std::ranges::copy_if(input.entries, std::back_inserter(outcome.entries),
                       [&](const auto& entry) { return keeps(entry, outcome); });
  std::ranges::sort(outcome.entries);
  clean();
  done_chunk_ = chunk_of(point.position.value());
  return outcome;
}

void ScavengeModel::load(const ModelInput& input) {
  log_.clear();
  index_.clear();
  for (const auto& chunk : input.chunks) {
    for (const auto& [position, framed] : chunk.records) {
      const auto decoded =
          log::decode_record(as_bytes(framed).subspan(4, framed.size() - log::kFramingSize));
      auto& record = log_[position];
      record.position = position;
      record.end = position + static_cast<Number>(framed.size());
      if (const auto* prepare = std::get_if<log::Prepare>(&decoded.value())) {
        record.prepare = true;
        record.number = prepare->expected_version + 1;
        record.time = prepare->timestamp.value();
        record.tombstone = prepare->has(log::prepare_flags::kStreamDelete);
        record.begins = prepare->has(log::prepare_flags::kTransactionBegin);
        record.committed = prepare->has(log::prepare_flags::kIsCommitted);
        record.old = prepare->version == 0;
        record.stream = prepare->stream;
        record.data = as_text(prepare->data);
      }
    }
  }
  for (const auto& entry : input.entries) {
    if (entry.position < point_.position) {
      index_[static_cast<Number>(entry.hash.value())].emplace_back(entry.number.value(),
                                                                   entry.position.value());
    }
  }
  for (auto& [hash, list] : index_) {
    std::ranges::sort(list);
  }
}

ScavengeModel::Number ScavengeModel::key(const std::string& stream) const {
  return static_cast<Number>(hash_(stream).value());
}

// --- Collisions ---

void ScavengeModel::note(const std::string& stream) {
  if (collisions_.contains(stream)) {
    return;
  }
  const auto [user, fresh] = users_.emplace(key(stream), stream);
  if (fresh || user->second == stream) {
    return;
  }
  collisions_.insert(stream);
  if (collisions_.insert(user->second).second) {
    if (auto moved = originals_.by_hash.extract(key(stream))) {
      originals_.by_name[user->second] = moved.mapped();
    }
    if (auto moved = metastreams_.by_hash.extract(key(stream))) {
      metastreams_.by_name[user->second] = {moved.mapped().tombstoned,
                                            moved.mapped().discard.value_or(0)};
    }
  }
}

template <class Row>
Row& ScavengeModel::row(Table<Row>& table, const std::string& stream) {
  return collisions_.contains(stream) ? table.by_name[stream] : table.by_hash[key(stream)];
}

template <class Row>
const Row* ScavengeModel::find(const Table<Row>& table, const std::string& stream) const {
  if (collisions_.contains(stream)) {
    const auto found = table.by_name.find(stream);
    return found == table.by_name.end() ? nullptr : &found->second;
  }
  const auto found = table.by_hash.find(key(stream));
  return found == table.by_hash.end() ? nullptr : &found->second;
}

std::vector<ScavengeModel::Info> ScavengeModel::infos(Number hash, const std::string* name) const {
  std::vector<Info> result;
  if (const auto found = index_.find(hash); found != index_.end()) {
    std::ranges::copy_if(found->second, std::back_inserter(result), [&](const Info& info) {
      const auto record = log_.find(info.second);
      return name == nullptr || (record != log_.end() && record->second.stream == *name);
    });
  }
  const auto same = std::ranges::unique(result, {}, &Info::first);  // the lowest position counts
  result.erase(same.begin(), same.end());
  return result;
}

std::vector<ScavengeModel::Info> ScavengeModel::infos(const std::string& stream) const {
  return infos(key(stream), collisions_.contains(stream) ? &stream : nullptr);
}

// --- Accumulate ---

void ScavengeModel::accumulate(const ModelInput& input) {
  const auto point = point_.position.value();
  for (int chunk = done_chunk_ ? *done_chunk_ + 1 : 0; chunk <= chunk_of(point); ++chunk) {
    const auto file = std::ranges::find_if(
        input.chunks, [&](const auto& each) { return each.start <= chunk && chunk <= each.end; });
    std::optional<std::pair<Number, Number>> range;
    const auto end = (chunk + 1) * chunk_size_;
    bool point_met = false;
    // In a merged file this takes in the first record behind a gap at the chunk's end, too.
    for (auto at = file->records.lower_bound(chunk * chunk_size_); at != file->records.end();
         ++at) {
      const auto& record = log_.at(at->first);
      if (record.prepare) {
        range = {std::min(record.time, range ? range->first : record.time),
                 std::max(record.time, range ? range->second : record.time)};
        if (record.tombstone) {
          add_tombstone(record, input);
        } else if (is_meta(record.stream)) {
          add_metadata(record);
        } else {
          note(record.stream);
        }
      }
      point_met = record.position == point;
      if (point_met || record.end >= end) {
        break;
      }
    }
    if (range) {
      ranges_[chunk] = *range;
    }
    if (point_met) {
      return;
    }
  }
}

void ScavengeModel::add_metadata(const Record& record) {
  const auto original = record.stream.substr(2);
  note(original);
  note(record.stream);
  const auto known = infos(record.stream);
  const auto from = std::max<Number>(record.number - 1, 0);
  std::optional<Number> replaced;
  bool first = true;
  for (const auto& [number, position] : known) {
    if (number < from || number >= from + 100) {
      continue;
    }
    if (position < record.position && number >= record.number) {
      weights_[chunk_of(record.position)] += 2;  // out of order: this one is to go
      return;
    }
    if (first && number < record.number && position < record.position) {
      replaced = position;
    }
    first = false;
  }
  if (replaced) {
    weights_[chunk_of(*replaced)] += 2;
  }
  if (!is_meta(original)) {
    auto& row = this->row(originals_, original);
    row.age = row.count = row.truncate = std::nullopt;
    row.status = 1;
    const auto json = nlohmann::json::parse(record.data, nullptr, false);
    Original limits;
    if (json.is_object() && has_valid_acl(json) && take(json, "$maxAge", 0, limits.age) &&
        take(json, "$maxCount", 0, limits.count) && take(json, "$tb", -1, limits.truncate) &&
        limits.age.value_or(0) <= kMax / kTicksPerSecond) {
      row.age = limits.age;
      row.count = limits.count;
      row.truncate = limits.truncate;
      if (record.old && row.truncate == std::numeric_limits<std::int32_t>::max()) {
        row.truncate = kMax;
      }
    }
  }
  if (record.number > 0) {
    row(metastreams_, record.stream).discard = record.number;
  }
}

void ScavengeModel::add_tombstone(const Record& record, const ModelInput& input) {
  note(record.stream);
  auto& stream = row(originals_, record.stream);
  stream.tombstoned = true;
  stream.status = 1;
  const auto meta = "$$" + record.stream;
  note(meta);
  row(metastreams_, meta).tombstoned = true;
  const auto known = infos(meta);
  const auto last = input.last_of(meta, collisions_.contains(meta));
  const auto found = std::ranges::find(known, last.value_or(-1), &Info::first);
  if (found != known.end()) {
    weights_[chunk_of(found->second)] += 2;
  }
}

// --- Calculate ---

void ScavengeModel::calculate(Original& row, const std::vector<Info>& infos, Number last) {
  if (row.status != 1) {
    return;
  }
  const auto cutoff = point_.effective_now.value() - row.age.value_or(0) * kTicksPerSecond;
  Number discard = 0;
  Number maybe = 0;
  bool all_gone = true;
  bool first = true;
  for (const auto& [number, position] : infos) {
    discard = first ? number : discard;
    maybe = first ? number : maybe;
    first = false;
    auto& weight = weights_[chunk_of(position)];
    const auto range = ranges_.find(chunk_of(position));
    if (number >= last) {
      break;
    }
    if (row.tombstoned || number < row.truncate.value_or(0) ||
        (row.count && number <= last - *row.count) ||
        (row.age && range != ranges_.end() && range->second.second < cutoff)) {
      discard = number + 1;
      all_gone = true;
      weight += 2;
    } else if (!row.age || (range != ranges_.end() && cutoff <= range->second.first)) {
      break;
    } else if (range == ranges_.end()) {
      discard = all_gone ? number + 1 : discard;
    } else {
      maybe = number + 1;
      all_gone = false;
      weight += 1;
    }
  }
  row.discard = std::max(row.discard, discard);
  row.maybe = std::max({row.maybe, maybe, discard});
  const bool unspent = row.truncate && *row.truncate != kMax && last < *row.truncate;
  row.status = row.tombstoned ? 2 : row.age || row.count || unspent ? 1 : 3;
}

// --- Execute ---

bool ScavengeModel::keeps(const Record& record) const {
  if (!record.prepare || record.position >= point_.position.value()) {
    return true;
  }
  const bool meta = is_meta(record.stream);
  const auto* metastream = meta ? find(metastreams_, record.stream) : nullptr;
  const auto* original = meta ? nullptr : find(originals_, record.stream);
  const bool tombstoned = (metastream != nullptr && metastream->tombstoned) ||
                          (original != nullptr && original->tombstoned);
  if (!record.committed) {
    return !tombstoned || (!unsafe_ && (record.tombstone || record.begins));
  }
  if (tombstoned && (unsafe_ || meta)) {
    return false;
  }
  if (meta) {
    return metastream == nullptr || record.number >= metastream->discard.value_or(0);
  }
  if (original == nullptr || record.number >= std::max(original->maybe, original->discard)) {
    return true;
  }
  return record.number >= original->discard &&
         (!original->age ||
          record.time >= point_.effective_now.value() - *original->age * kTicksPerSecond);
}

bool ScavengeModel::keeps(const index::IndexEntry& entry, const ModelOutcome& outcome) const {
  if (entry.position >= point_.position) {
    return true;
  }
  const auto hash = static_cast<Number>(entry.hash.value());
  const Original* original = nullptr;
  const Metastream* metastream = nullptr;
  if (std::ranges::any_of(collisions_, [&](const auto& name) { return key(name) == hash; })) {
    if (!outcome.records.contains(entry.position.value())) {
      return false;
    }
    const auto& stream = log_.at(entry.position.value()).stream;
    (is_meta(stream) ? static_cast<void>(metastream = find(metastreams_, stream))
                     : static_cast<void>(original = find(originals_, stream)));
  } else if (const auto found = originals_.by_hash.find(hash); found != originals_.by_hash.end()) {
    original = &found->second;
  } else if (const auto meta = metastreams_.by_hash.find(hash);
             meta != metastreams_.by_hash.end()) {
    metastream = &meta->second;
  }
  if (metastream != nullptr) {
    return !metastream->tombstoned && entry.number.value() >= metastream->discard.value_or(0);
  }
  return original == nullptr ||
         (!(original->tombstoned && unsafe_) && entry.number.value() >= original->discard);
}

void ScavengeModel::clean() {
  std::erase_if(weights_, [](const auto& entry) { return entry.second == 0; });
  if (!weights_.empty()) {
    return;
  }
  metastreams_ = {};
  const auto done = [&](const auto& entry) {
    return entry.second.status == 3 || (unsafe_ && entry.second.status == 2);
  };
  std::erase_if(originals_.by_hash, done);
  std::erase_if(originals_.by_name, done);
}

// --- State ---

StateRows ScavengeModel::rows() const {
  StateRows rows;
  const auto text = [](const std::optional<Number>& number) {
    return number ? std::to_string(*number) : "null";
  };
  const auto put = [&](const std::string& table, const auto& key, const auto&... columns) {
    auto line = fmt::format("{}", key);
    ((line += fmt::format(" | {}", columns)), ...);
    rows[table].push_back(line);
  };
  const auto put_original = [&](const std::string& table, const auto& key, const Original& row) {
    put(table, key, row.tombstoned ? 1 : 0, text(row.age), text(row.count), text(row.truncate),
        row.discard, row.maybe, row.status);
  };
  const auto put_metastream = [&](const std::string& table, const auto& key,
                                  const Metastream& row) {
    put(table, key, row.tombstoned ? 1 : 0, text(row.discard));
  };
  for (const auto* table :
       {"HashUsers", "HashCollisions", "OriginalStreamDatas", "OriginalStreamDataCollisions",
        "MetastreamDatas", "MetastreamDataCollisions", "ChunkTimeStampRanges", "ChunkWeights"}) {
    rows[table];
  }
  for (const auto& [hash, name] : users_) {
    put("HashUsers", hash, name);
  }
  for (const auto& name : collisions_) {
    put("HashCollisions", name);
  }
  for (const auto& [key, row] : originals_.by_hash) {
    put_original("OriginalStreamDatas", key, row);
  }
  for (const auto& [key, row] : originals_.by_name) {
    put_original("OriginalStreamDataCollisions", key, row);
  }
  for (const auto& [key, row] : metastreams_.by_hash) {
    put_metastream("MetastreamDatas", key, row);
  }
  for (const auto& [key, row] : metastreams_.by_name) {
    put_metastream("MetastreamDataCollisions", key, row);
  }
  for (const auto& [chunk, range] : ranges_) {
    put("ChunkTimeStampRanges", chunk, range.first, range.second);
  }
  for (const auto& [chunk, weight] : weights_) {
    put("ChunkWeights", chunk, fmt::format("{:.1f}", weight));
  }
  for (auto& [table, lines] : rows) {
    std::ranges::sort(lines);
  }
  return rows;
}

}  // namespace verger::test
