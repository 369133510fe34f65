#include "engine/online/prepared_chunks.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/json_number.h"
#include "engine/log/chunk.h"
#include "engine/online/shadow.h"

namespace verger::online_scavenge {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;
constexpr std::string_view kFileName = "prepared.json";

json to_json(const ChunkFile& file) {
  return {{"name", file.name},
          {"chunkId", file.chunk_id.to_string()},
          {"md5", to_hex(file.md5)},
          {"size", file.size}};
}

std::byte byte_of(std::string_view hex) {
  const auto digit = [](char c) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto at = kDigits.find(c);
    if (at == std::string_view::npos) {
      throw std::out_of_range("hexadecimal digits");
    }
    return static_cast<unsigned>(at);
  };
  return static_cast<std::byte>(digit(hex.at(0)) * 16U + digit(hex.at(1)));
}

/// These throw: the caller answers with kCorruption.
ChunkFile chunk_file_of(const json& value) {
  ChunkFile file;
  file.name = value.at("name").get<std::string>();
  const auto id = Uuid::parse(value.at("chunkId").get<std::string>());
  const auto md5 = value.at("md5").get<std::string>();
  if (!id || md5.size() != 2 * file.md5.size() ||
      file.name.find_first_of("/\\") != std::string::npos || file.name.empty() ||
      file.name.front() == '.') {
    throw std::out_of_range("a chunk file");
  }
  file.chunk_id = *id;
  for (std::size_t n = 0; n < file.md5.size(); ++n) {
    file.md5.at(n) = byte_of(std::string_view(md5).substr(2 * n, 2));
  }
  file.size = json_integer<std::uint64_t>(value.at("size"));
  return file;
}

Preparation parse_preparation(std::string_view text) {
  const auto value = json::parse(text);
  if (value.at("format") != kFormat) {
    throw std::out_of_range("another format");
  }
  Preparation out;
  const auto& point = value.at("point");
  out.point.position = LogPosition(json_integer<std::int64_t>(point.at("position")));
  out.point.number = EventNumber(json_integer<std::int64_t>(point.at("number")));
  out.point.effective_now = Ticks(json_integer<std::int64_t>(point.at("effectiveNow")));
  out.point.threshold = json_integer<std::int32_t>(point.at("threshold"));
  out.checkpoint_before = value.at("checkpointBefore").get<std::string>();
  out.compared = value.at("compared").get<bool>();
  for (const auto& weight : value.at("weights")) {
    out.weights[json_integer<std::int32_t>(weight.at(0))] = weight.at(1).get<double>();
  }
  for (const auto& chunk : value.at("chunks")) {
    out.chunks.push_back(
        {.start = json_integer<std::int32_t>(chunk.at("start")),
         .end = json_integer<std::int32_t>(chunk.at("end")),
         .source = chunk_file_of(chunk.at("source")),
         .made = chunk_file_of(chunk.at("made")),
         .records_kept = json_integer<std::uint64_t>(chunk.at("recordsKept")),
         .records_removed = json_integer<std::uint64_t>(chunk.at("recordsRemoved"))});
  }
  return out;
}

}  // namespace

std::string encode_preparation(const Preparation& preparation) {
  const auto& point = preparation.point;
  json chunks = json::array();
  for (const auto& chunk : preparation.chunks) {
    chunks.push_back({{"start", chunk.start},
                      {"end", chunk.end},
                      {"source", to_json(chunk.source)},
                      {"made", to_json(chunk.made)},
                      {"recordsKept", chunk.records_kept},
                      {"recordsRemoved", chunk.records_removed}});
  }
  json weights = json::array();
  for (const auto& [chunk, weight] : preparation.weights) {
    weights.push_back(json::array({chunk, weight}));
  }
  return json{{"format", kFormat},
              {"point",
               {{"position", point.position.value()},
                {"number", point.number.value()},
                {"effectiveNow", point.effective_now.value()},
                {"threshold", point.threshold}}},
              {"checkpointBefore", preparation.checkpoint_before},
              {"compared", preparation.compared},
              {"weights", std::move(weights)},
              {"chunks", std::move(chunks)}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Preparation> decode_preparation(std::string_view text) {
  try {
    return parse_preparation(text);
  } catch (const std::exception& error) {
    return Error{Errc::kCorruption, error.what()};
  }
}

Result<void> store_preparation(FileSystem& files, const Path& database,
                               const Preparation& preparation) {
  const auto text = encode_preparation(preparation);
  return write_file_durably(files, shadow_directory(database) / kFileName, as_bytes(text));
}

Result<Preparation> load_preparation(FileSystem& files, const Path& database) {
  const auto path = shadow_directory(database) / kFileName;
  VERGER_TRY(const auto bytes, read_file(files, path));
  auto preparation = decode_preparation(as_text(bytes));
  return preparation ? std::move(preparation) : preparation.error().within(path.string());
}

Result<ChunkFile> describe_chunk(FileSystem& files, const Path& path) {
  VERGER_TRY(const auto chunk, log::Chunk::open_completed(files, path));
  return ChunkFile{.name = path.filename().string(),
                   .chunk_id = chunk->header().chunk_id,
                   .md5 = chunk->footer()->md5,
                   .size = chunk->file_size()};
}

Result<ChunkFile> live_chunk(FileSystem& files, const Path& database, std::int32_t start) {
  VERGER_TRY(const auto entries, files.list(database));
  std::string newest;
  int version = -1;
  for (const auto& entry : entries) {
    const auto name = log::parse_chunk_file_name(entry.name);
    if (name && name->start.value() == start && name->version > version) {
      newest = entry.name;
      version = name->version;
    }
  }
  if (newest.empty()) {
    return Error{Errc::kNotFound, fmt::format("{}: no file of a chunk that starts with {}",
                                              database.string(), start)};
  }
  return describe_chunk(files, database / newest);
}

}  // namespace verger::online_scavenge
