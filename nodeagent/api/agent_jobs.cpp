#include "nodeagent/api/agent_jobs.h"

#include "nodeagent/api/detail/request_document.h"
#include "nodeagent/api/json_fields.h"

namespace verger::api {
namespace {

template <class T>
std::string text_of(const T& value) {
  JsonWriter out;
  write(out, value);
  return out.take();
}

Result<StoredFile> stored_file_of(JsonView value, const std::string& where) {
  StoredFile file;
  Fields fields(value, where);
  fields.need("sha256", file.sha256);
  fields.need("bytes", file.bytes);
  fields.read("storedAt", file.stored_at);
  VERGER_RETURN_IF_ERROR(fields.result());
  return file;
}

}  // namespace

void write(JsonWriter& out, const OperationProgress& progress) {
  out.begin_object().member("phase", progress.phase);
  const auto known = [&out](std::string_view name, std::int64_t number) {
    if (number >= 0) {
      out.member(name, number);
    }
  };
  known("done", progress.done);
  known("total", progress.total);
  if (!progress.unit.empty()) {
    out.member("unit", progress.unit);
  }
  known("bytes", progress.bytes);
  known("rate", progress.rate);
  if (!progress.since.empty()) {
    out.member("since", progress.since);
  }
  out.end_object();
}

void write(JsonWriter& out, const Throttle& throttle) {
  out.begin_object()
      .member("percent", throttle.percent)
      .member("bytesPerSecond", throttle.bytes_per_second)
      .end_object();
}

void write(JsonWriter& out, const StoredFile& file) {
  out.begin_object()
      .member("sha256", file.sha256)
      .member("bytes", file.bytes)
      .member("storedAt", file.stored_at)
      .end_object();
}

std::string to_text(const Throttle& throttle) { return text_of(throttle); }
std::string to_text(const StoredFile& file) { return text_of(file); }

std::string to_text(const std::vector<StoredFile>& files) {
  JsonWriter out;
  out.begin_object().name("files").begin_list();
  for (const auto& file : files) {
    write(out, file);
  }
  return out.end_list().end_object().take();
}

Result<OperationProgress> progress_of(JsonView value, const std::string& where) {
  OperationProgress progress;
  Fields fields(value, where);
  fields.read("phase", progress.phase);
  fields.read("done", progress.done);
  fields.read("total", progress.total);
  fields.read("unit", progress.unit);
  fields.read("bytes", progress.bytes);
  fields.read("rate", progress.rate);
  fields.read("since", progress.since);
  VERGER_RETURN_IF_ERROR(fields.result());
  return progress;
}

Result<Throttle> throttle_of(JsonView value, const std::string& where) {
  Throttle throttle;
  Fields fields(value, where, Errc::kInvalidArgument);
  fields.read("percent", throttle.percent);
  fields.read("bytesPerSecond", throttle.bytes_per_second);
  if (throttle.percent < 1 || throttle.percent > 100) {
    fields.wrong("percent", "must be 1 to 100");
  }
  if (throttle.bytes_per_second < 0) {
    fields.wrong("bytesPerSecond", "must be 0 (no limit) or more");
  }
  VERGER_RETURN_IF_ERROR(fields.result());
  return throttle;
}

Result<Throttle> parse_throttle(std::string_view body) {
  VERGER_TRY(const auto document, request_document(body, "throttle"));
  return throttle_of(document.root(), "throttle");
}

Result<StoredFile> parse_stored_file(std::string_view body) {
  VERGER_TRY(const auto document, JsonDocument::parse(body, "file"));
  return stored_file_of(document.root(), "file");
}

Result<std::vector<StoredFile>> parse_stored_files(std::string_view body) {
  VERGER_TRY(const auto document, JsonDocument::parse(body, "files"));
  std::vector<StoredFile> out;
  Fields fields(document.root(), "files");
  fields.each("files", [&](JsonView element, const std::string& where) -> Result<void> {
    VERGER_TRY(auto file, stored_file_of(element, where));
    out.push_back(std::move(file));
    return {};
  });
  VERGER_RETURN_IF_ERROR(fields.result());
  return out;
}

}  // namespace verger::api
