#include "engine/object_store/detail/answers.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "engine/base/number_from_text.h"

namespace verger::object_store::detail {
namespace {

constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
    {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&amp;", '&'}}};

/// Where an opening tag of this name ends, at or behind `from`; npos: there is none.
std::size_t behind_tag(std::string_view xml, std::string_view name, std::size_t from) {
  for (auto at = xml.find('<', from); at != std::string_view::npos; at = xml.find('<', at + 1)) {
    const auto rest = xml.substr(at + 1);
    if (!rest.starts_with(name) || rest.size() == name.size()) {
      continue;
    }
    const char next = rest[name.size()];
    const auto end = rest.find('>');
    const bool ends_here =
        next == '>' || next == ' ' || next == '\t' || next == '\n' || next == '\r' || next == '/';
    if (ends_here && end != std::string_view::npos) {
      return at + 1 + end + 1;
    }
  }
  return std::string_view::npos;
}

std::string unescaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto* const entity = std::ranges::find_if(
        kEntities, [&](const auto& one) { return text.starts_with(one.first); });
    const bool known = entity != kEntities.end();
    result += known ? entity->second : text.front();
    text.remove_prefix(known ? entity->first.size() : 1);
  }
  return result;
}

Error bad_answer(std::string_view what) {
  return {Errc::kCorruption, fmt::format("the object storage answers what is no {}", what)};
}

}  // namespace

std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name) {
  std::vector<std::string_view> found;
  const auto closing = fmt::format("</{}>", name);
  for (auto at = behind_tag(xml, name, 0); at != std::string_view::npos;
       at = behind_tag(xml, name, at)) {
    if (xml[at - 2] == '/') {
      found.emplace_back();
      continue;
    }
    const auto end = xml.find(closing, at);
    if (end == std::string_view::npos) {
      break;
    }
    found.push_back(xml.substr(at, end - at));
    at = end + closing.size();
  }
  return found;
}

std::string xml_text(std::string_view xml, std::string_view name) {
  const auto found = xml_elements(xml, name);
  return found.empty() ? std::string() : unescaped(found.front());
}

std::string xml_escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    const auto* const entity =
        std::ranges::find(kEntities, letter, &std::pair<std::string_view, char>::second);
    if (entity != kEntities.end()) {
      result += entity->first;
    } else {
      result += letter;
    }
  }
  return result;
}

ServerError server_error_of(std::string_view body) {
  const auto errors = xml_elements(body, "Error");
  if (errors.empty()) {
    return {};
  }
  return {.code = xml_text(errors.front(), "Code"), .message = xml_text(errors.front(), "Message")};
}

Result<ListPage> list_page_of(std::string_view body) {
  const auto results = xml_elements(body, "ListBucketResult");
  if (results.empty()) {
    return bad_answer("list of objects");
  }
  ListPage page;
  for (const auto object : xml_elements(results.front(), "Contents")) {
    const auto size = number_from_text<std::uint64_t>(xml_text(object, "Size"));
    auto key = xml_text(object, "Key");
    if (!size || key.empty()) {
      return bad_answer("list of objects with their sizes");
    }
    page.objects.push_back({.key = std::move(key), .size = *size});
  }
  if (xml_text(results.front(), "IsTruncated") == "true") {
    page.next = xml_text(results.front(), "NextContinuationToken");
    if (page.next.empty()) {
      return bad_answer("list of objects: it is not the last page, and names no next one");
    }
  }
  return page;
}

Result<UploadPage> upload_page_of(std::string_view body) {
  const auto results = xml_elements(body, "ListMultipartUploadsResult");
  if (results.empty()) {
    return bad_answer("list of uploads");
  }
  UploadPage page;
  for (const auto upload : xml_elements(results.front(), "Upload")) {
    page.uploads.push_back({.key = xml_text(upload, "Key"), .id = xml_text(upload, "UploadId")});
    if (page.uploads.back().key.empty() || page.uploads.back().id.empty()) {
      return bad_answer("list of uploads with their ids");
    }
  }
  if (xml_text(results.front(), "IsTruncated") == "true") {
    page.next = UnfinishedUpload{.key = xml_text(results.front(), "NextKeyMarker"),
                                 .id = xml_text(results.front(), "NextUploadIdMarker")};
    if (page.next->key.empty()) {
      return bad_answer("list of uploads: it is not the last page, and names no next one");
    }
  }
  return page;
}

}  // namespace verger::object_store::detail
