#include "nodeagent/operations/redaction/noted_texts.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/base/byte_reader.h"
#include "engine/base/digest.h"
#include "engine/base/directories.h"
#include "nodeagent/operations/redaction/redaction_look.h"
#include "nodeagent/operations/redaction/redaction_operations.h"

namespace verger::agent {
namespace {

constexpr std::string_view kNotedMagic = "VGRNOTE";
constexpr std::uint8_t kNotedVersion = 1;
constexpr std::string_view kNotedSuffix = ".noted";
constexpr std::uint64_t kMostNotedBytes = 1ULL << 30U;

Bytes encode_noted(const NotedTextStore::Entry& entry, Ticks at) {
  Bytes out;
  append_bytes(out, as_bytes(kNotedMagic));
  append_le(out, kNotedVersion);
  append_le(out, at.value());
  append_le(out, static_cast<std::uint32_t>(entry.positions.size()));
  for (const auto position : entry.positions) {
    append_le(out, position.value());
  }
  append_le(out, static_cast<std::uint32_t>(entry.chunks.size()));
  for (const auto& chunk : entry.chunks) {
    append_bytes(out, chunk.md5);
    append_le(out, chunk.record.value());
    append_le(out, chunk.records);
    append_le(out, static_cast<std::uint16_t>(chunk.file.size()));
    append_bytes(out, as_bytes(chunk.file));
  }
  append_bytes(out, sha256(out));
  append_bytes(out, entry.digests.encode());
  return out;
}

struct NotedFile {
  Ticks at{};
  std::set<LogPosition> positions{};
  std::vector<NotedTextStore::ChunkBefore> chunks{};
  ByteView digests{};  ///< encoded
};

Result<NotedFile> decode_noted(ByteView bytes) {
  const Error damaged{Errc::kCorruption, "noted texts: damaged"};
  ByteReader in(bytes);
  if (as_text(in.bytes(kNotedMagic.size())) != kNotedMagic) {
    return damaged;
  }
  if (in.integer<std::uint8_t>() != kNotedVersion) {
    return Error{Errc::kUnsupported, "noted texts: of another version"};
  }
  NotedFile out;
  out.at = Ticks(in.integer<std::int64_t>());
  const auto positions = in.integer<std::uint32_t>();
  for (std::uint32_t n = 0; n < positions && in.ok(); ++n) {
    out.positions.insert(LogPosition(in.integer<std::int64_t>()));
  }
  const auto chunks = in.integer<std::uint32_t>();
  for (std::uint32_t n = 0; n < chunks && in.ok(); ++n) {
    auto& chunk = out.chunks.emplace_back();
    chunk.md5 = in.array<sizeof(Md5Digest)>();
    chunk.record = LogPosition(in.integer<std::int64_t>());
    chunk.records = in.integer<std::uint32_t>();
    chunk.file = as_text(in.bytes(in.integer<std::uint16_t>()));
  }
  const auto checked = bytes.size() - in.left();
  const auto check = in.bytes(sizeof(Sha256Digest));
  if (!in.ok() || !same_bytes(sha256(bytes.first(checked)), check)) {
    return damaged;
  }
  out.digests = in.bytes(in.left());
  return out;
}

}  // namespace

NotedTextStore::NotedTextStore(Path directory, Environment environment)
    : directory_(std::move(directory)), environment_(std::move(environment)) {}

Path NotedTextStore::path_of(const std::string& list) const {
  return directory_ / fmt::format("{}{}", to_hex(sha256(as_bytes(list))), kNotedSuffix);
}

Result<NotedTextStore::Entry> NotedTextStore::load(const std::string& list) const {
  const std::scoped_lock lock(guard_);
  const auto path = path_of(list);
  VERGER_TRY(const bool there, environment_.files.exists(path));
  if (!there) {
    return Error{Errc::kNotFound, fmt::format("{}: not there", path.string())};
  }
  VERGER_TRY(const auto bytes, read_file(environment_.files, path, kMostNotedBytes));
  auto file = decode_noted(bytes);
  auto digests = file ? redaction::PlaintextDigests::decode(file->digests)
                      : Result<redaction::PlaintextDigests>(file.error());
  if (!digests) {
    static_cast<void>(remove(path));  // it is of no use, and a secret all the same
    return digests.error().within(path.string());
  }
  return Entry{.positions = std::move(file->positions),
               .chunks = std::move(file->chunks),
               .digests = *std::move(digests)};
}

Result<void> NotedTextStore::save(const std::string& list, const Entry& entry) {
  const std::scoped_lock lock(guard_);
  VERGER_RETURN_IF_ERROR(make_directories_durably(environment_.files, directory_));
  // A crash before the rename leaves a draft, which collect() removes.
  return write_secret_file(environment_.files, environment_.make_private, path_of(list),
                           encode_noted(entry, environment_.clock.now()));
}

void NotedTextStore::forget(const std::string& list) {
  const std::scoped_lock lock(guard_);
  const auto path = path_of(list);
  if (const auto there = environment_.files.exists(path); there && !*there) {
    return;
  }
  if (const auto removed = remove(path); !removed) {
    environment_.log.warning("what a redaction has noted of its texts cannot be removed",
                             {{"error", removed.error().message}});
  }
}

void NotedTextStore::collect() {
  const std::scoped_lock lock(guard_);
  const auto there = environment_.files.exists(directory_);
  const auto entries =
      there && *there ? environment_.files.list(directory_) : Result<std::vector<DirectoryEntry>>();
  if (!entries) {
    return;
  }
  const auto oldest =
      environment_.clock.now().value() - std::chrono::seconds(kKept).count() * kTicksPerSecond;
  for (const auto& entry : *entries) {
    const auto path = directory_ / entry.name;
    if (entry.is_directory || !entry.name.contains(kNotedSuffix)) {
      continue;
    }
    const auto bytes = read_file(environment_.files, path, kMostNotedBytes);
    const auto file = bytes ? decode_noted(*bytes) : Result<NotedFile>(bytes.error());
    const bool of_use = file ? file->at.value() >= oldest : file.error().code == Errc::kIo;
    if (entry.name.ends_with(kNotedSuffix) && of_use) {
      continue;
    }
    if (const auto removed = remove(path); removed) {
      environment_.log.info("what a redaction had noted of its texts was removed",
                            {{"file", path.string()}});
    }
  }
}

Result<void> NotedTextStore::remove(const Path& path) const {
  VERGER_RETURN_IF_ERROR(environment_.files.remove(path));
  return environment_.files.sync_directory(directory_);
}

NotedTexts::NotedTexts(std::shared_ptr<NotedTextStore> store,
                       const std::vector<redaction::ListedRedaction>& list, Random& random,
                       Log& log)
    : store_(std::move(store)),
      list_(redaction::encode_list(list)),
      out_(log),
      noted_{.digests = redaction::PlaintextDigests(random)} {}

Result<void> NotedTexts::note(const log::TransactionLog& log, const redaction::RedactionPlan& plan,
                              RedactionResult& into) {
  if (store_ && !std::exchange(looked_, true)) {
    if (auto former = store_->load(list_)) {
      noted_ = *std::move(former);
    } else if (former.error().code != Errc::kNotFound) {
      out_.warning("what a former attempt has noted of the texts cannot be read",
                   {{"reason", former.error().message}});
    }
  }
  bool more = false;
  for (const auto& chunk : plan.chunks) {
    if (!chunk.active) {
      VERGER_TRY(const bool some, note_chunk(log, plan, chunk));
      more = more || some;
    }
  }
  if (store_ && more) {
    if (const auto saved = store_->save(list_, noted_); !saved) {
      out_.warning(
          "the texts cannot be noted on disk: should this agent be killed, its redaction "
          "is not proven",
          {{"error", saved.error().message}});
    }
  }
  into.records = plan.records.size();
  into.already =
      static_cast<std::size_t>(std::ranges::count_if(plan.records, [this](const auto& record) {
        return record.already && !noted_.positions.contains(record.position);
      }));
  into.missing = plan.missing;
  into.texts = noted_.digests.searchable_count();
  into.unsearchable = noted_.digests.text_count() - noted_.digests.searchable_count();
  return {};
}

Result<bool> NotedTexts::note_chunk(const log::TransactionLog& log,
                                    const redaction::RedactionPlan& plan,
                                    const redaction::PlannedChunk& chunk) {
  Bytes buffer;
  std::uint32_t more = 0;
  for (const auto index : chunk.records) {
    const auto& planned = plan.records[index];
    if (noted_.positions.contains(planned.position)) {
      continue;
    }
    VERGER_TRY(const auto record, log.read(planned.position, buffer));
    const auto* prepare = record.prepare();
    if (prepare == nullptr) {
      continue;
    }
    for (const auto& text : {prepare->data, planned.metadata ? prepare->metadata : ByteView()}) {
      if (!text.empty()) {
        noted_.digests.add(text);
      }
    }
    noted_.positions.insert(planned.position);
    ++more;
  }
  const auto file =
      more == 0 ? nullptr : log.chunk_at(plan.records[chunk.records.front()].position);
  if (file != nullptr && file->completed()) {
    noted_.chunks.push_back({.file = chunk.file,
                             .md5 = file->footer()->md5,
                             .record = plan.records[chunk.records.front()].position,
                             .records = more});
  }
  return more > 0;
}

void NotedTexts::complete_chunks(const log::TransactionLog& log, RedactionResult& into) const {
  for (const auto& before : noted_.chunks) {
    const auto chunk = log.chunk_at(before.record);
    const auto now = chunk == nullptr ? before.file : chunk->path().filename().string();
    const bool known = std::ranges::any_of(
        into.chunks, [&](const auto& each) { return each.from == before.file || each.to == now; });
    if (now != before.file && !known && chunk->completed()) {
      into.chunks.push_back({.from = before.file,
                             .to = now,
                             .records = before.records,
                             .md5_before = before.md5,
                             .md5_after = chunk->footer()->md5});
    }
  }
}

void forget_texts(NotedTextStore& store, const OperationRecord& record) {
  // Of nearly all operations: without that member there is no list. A name may have escapes.
  const auto& parameters = record.request.parameters_json;
  if (!parameters.contains(kListMember) && !parameters.contains('\\')) {
    return;
  }
  if (const auto list = list_in(record)) {
    store.forget(redaction::encode_list(*list));
  }
}

}  // namespace verger::agent
