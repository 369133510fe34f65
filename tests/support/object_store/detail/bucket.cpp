#include "tests/support/object_store/detail/bucket.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/base/number_from_text.h"

namespace verger::test::detail {
namespace {

std::string text_or(const std::map<std::string, std::string>& from, const std::string& name) {
  const auto found = from.find(name);
  return found == from.end() ? std::string() : found->second;
}

std::string quoted_md5(const std::string& content) {
  return fmt::format("\"{}\"", to_hex(md5(as_bytes(content))));
}

S3Reply xml_reply(const std::string& body) {
  return {.headers = {{"Content-Type", "application/xml"}},
          .body = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + body};
}

struct ByteRange {
  std::size_t first = 0;
  std::size_t last = 0;
};
/// Of "bytes=FIRST-LAST".
std::optional<ByteRange> range_of(const std::string& text) {
  const auto dash = text.find('-');
  if (!text.starts_with("bytes=") || dash == std::string::npos) {
    return std::nullopt;
  }
  return ByteRange{number_from_text<std::size_t>(text.substr(6, dash - 6)).value_or(0),
                   number_from_text<std::size_t>(text.substr(dash + 1)).value_or(0)};
}

}  // namespace

S3Reply error_reply(int status, const std::string& code) {
  auto reply = xml_reply(fmt::format(
      "<Error><Code>{}</Code><Message>as the test &quot;wants&quot;</Message></Error>", code));
  reply.status = status;
  return reply;
}

std::string Bucket::begin_upload(const std::string& key) {
  const auto id = fmt::format("upload-{}+/=", ++uploads_begun_);
  uploads[id].key = key;
  return id;
}

S3Reply Bucket::answer(const S3Call& call) {
  if (call.key.empty()) {
    return call.asks_for("uploads") ? list_uploads(call) : list(call);
  }
  if (call.method == "POST") {
    return call.asks_for("uploads")
               ? xml_reply(fmt::format("<InitiateMultipartUploadResult><UploadId>{}</UploadId>"
                                       "</InitiateMultipartUploadResult>",
                                       begin_upload(call.key)))
               : complete(call);
  }
  if (call.method == "PUT") {
    return call.asks_for("partNumber") ? put_part(call) : put(call);
  }
  if (call.method == "DELETE") {
    if (call.asks_for("uploadId")) {
      return uploads.erase(call.query.at("uploadId")) > 0 ? S3Reply{.status = 204}
                                                          : error_reply(404, "NoSuchUpload");
    }
    objects.erase(call.key);
    return {.status = 204};
  }
  return get(call);
}

S3Reply Bucket::get(const S3Call& call) {
  const auto found = objects.find(call.key);
  if (found == objects.end()) {
    return error_reply(404, "NoSuchKey");
  }
  const auto& content = found->second;
  S3Reply reply{.headers = kept_[call.key].headers, .body = content};
  const auto& etag = kept_[call.key].etag;
  reply.headers["ETag"] = etag.empty() ? quoted_md5(content) : etag;
  if (const auto range = range_of(text_or(call.headers, "range"))) {
    if (range->first >= content.size()) {
      return error_reply(416, "InvalidRange");
    }
    reply.status = 206;
    reply.body = content.substr(range->first, range->last - range->first + 1);
  }
  return reply;
}

const std::string* Bucket::source_of(const S3Call& call) const {
  const auto source = text_or(call.headers, "x-amz-copy-source");
  constexpr std::string_view kStart = "/bucket/";
  const auto found =
      objects.find(source.starts_with(kStart) ? source.substr(kStart.size()) : std::string());
  return found == objects.end() ? nullptr : &found->second;
}

S3Reply Bucket::put(const S3Call& call) {
  if (call.headers.contains("x-amz-copy-source")) {
    const auto* const source = source_of(call);
    if (source == nullptr) {
      return error_reply(404, "NoSuchKey");
    }
    objects[call.key] = *source;
    kept_.erase(call.key);
    return xml_reply(
        fmt::format("<CopyObjectResult><ETag>{}</ETag></CopyObjectResult>", quoted_md5(*source)));
  }
  objects[call.key] = call.body;
  Kept kept{.headers = {}, .etag = quoted_md5(call.body)};
  for (const auto& [name, value] : call.headers) {
    if (name.starts_with("x-amz-meta-")) {
      kept.headers[name] = value;
    }
  }
  kept_[call.key] = std::move(kept);
  return {.headers = {{"ETag", quoted_md5(call.body)}}};
}

S3Reply Bucket::put_part(const S3Call& call) {
  const auto upload = uploads.find(text_or(call.query, "uploadId"));
  if (upload == uploads.end() || upload->second.key != call.key) {
    return error_reply(404, "NoSuchUpload");
  }
  const int number = number_from_text<int>(call.query.at("partNumber")).value_or(0);
  auto& part = upload->second.parts[number];
  const auto* const source = source_of(call);
  if (source == nullptr) {
    part = call.body;
    return {.headers = {{"ETag", quoted_md5(part)}}};
  }
  const auto range = range_of(text_or(call.headers, "x-amz-copy-source-range"));
  part = range ? source->substr(range->first, range->last - range->first + 1) : *source;
  return xml_reply(
      fmt::format("<CopyPartResult><ETag>{}</ETag></CopyPartResult>", quoted_md5(part)));
}

S3Reply Bucket::complete(const S3Call& call) {
  const auto upload = uploads.find(text_or(call.query, "uploadId"));
  if (upload == uploads.end()) {
    return error_reply(404, "NoSuchUpload");
  }
  std::string content;
  std::string digests;
  for (const auto& [number, part] : upload->second.parts) {
    const auto named = fmt::format("<PartNumber>{}</PartNumber><ETag>&quot;{}&quot;</ETag>", number,
                                   to_hex(md5(as_bytes(part))));
    if (!call.body.contains(named)) {
      return error_reply(400, "InvalidPart");
    }
    content += part;
    digests += as_text(md5(as_bytes(part)));
  }
  objects[call.key] = content;
  kept_[call.key].etag =
      fmt::format("\"{}-{}\"", to_hex(md5(as_bytes(digests))), upload->second.parts.size());
  uploads.erase(upload);
  return xml_reply("<CompleteMultipartUploadResult></CompleteMultipartUploadResult>");
}

S3Reply Bucket::list(const S3Call& call) const {
  const auto prefix = text_or(call.query, "prefix");
  const auto delimiter = text_or(call.query, "delimiter");
  // The token is the last key of the page before, with letters that have to be encoded.
  auto after = text_or(call.query, "continuation-token");
  after = after.substr(std::min<std::size_t>(after.size(), 2));
  std::string body;
  std::string last;
  std::size_t count = 0;
  bool more = false;
  for (const auto& [key, content] : objects) {
    const bool deeper =
        !delimiter.empty() && key.find(delimiter, prefix.size()) != std::string::npos;
    if (!key.starts_with(prefix) || deeper || (!after.empty() && key <= after)) {
      continue;
    }
    if (count == page_size) {
      more = true;
      break;
    }
    body += fmt::format("<Contents><Key>{}</Key><Size>{}</Size></Contents>", key, content.size());
    last = key;
    ++count;
  }
  const auto next =
      more ? fmt::format("<NextContinuationToken>+&amp;{}</NextContinuationToken>", last) : "";
  return xml_reply(
      fmt::format("<ListBucketResult xmlns=\"x\"><IsTruncated>{}</IsTruncated>{}{}"
                  "</ListBucketResult>",
                  more, next, body));
}

S3Reply Bucket::list_uploads(const S3Call& call) const {
  const auto prefix = text_or(call.query, "prefix");
  const auto marker = text_or(call.query, "upload-id-marker");
  std::string body;
  std::string next;
  std::size_t count = 0;
  for (const auto& [id, upload] : uploads) {
    if (!upload.key.starts_with(prefix) || (!marker.empty() && id <= marker)) {
      continue;
    }
    if (count == page_size) {
      next = "<IsTruncated>true</IsTruncated>" + next;
      break;
    }
    body += fmt::format("<Upload><Key>{}</Key><UploadId>{}</UploadId></Upload>", upload.key, id);
    next = fmt::format(
        "<NextKeyMarker>{}</NextKeyMarker><NextUploadIdMarker>{}"
        "</NextUploadIdMarker>",
        upload.key, id);
    ++count;
  }
  return xml_reply(
      fmt::format("<ListMultipartUploadsResult>{}{}</ListMultipartUploadsResult>", next, body));
}

}  // namespace verger::test::detail
