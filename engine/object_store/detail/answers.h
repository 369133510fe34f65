#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

/// What an S3-compatible server says, in XML. Its answers are flat: an element that is looked for
/// has none of its own name inside.
namespace verger::object_store::detail {

/// What is between <name> and </name>, of each such element, as it stands.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name);
/// The text of the first such element; empty where there is none.
std::string xml_text(std::string_view xml, std::string_view name);
/// A text as the content of an element.
std::string xml_escaped(std::string_view text);

/// The answer to a request that failed, in its body.
struct ServerError {
  std::string code{};  ///< "NoSuchKey"; empty: the body is no such answer
  std::string message{};
};
ServerError server_error_of(std::string_view body);

struct ListedObject {
  std::string key{};
  std::uint64_t size = 0;
};
/// One page of a list.
struct ListPage {
  std::vector<ListedObject> objects{};
  std::string next{};  ///< the token of the next page; empty: this is the last
};
/// Error: kCorruption.
Result<ListPage> list_page_of(std::string_view body);

struct UnfinishedUpload {
  std::string key{};
  std::string id{};
};
struct UploadPage {
  std::vector<UnfinishedUpload> uploads{};
  std::optional<UnfinishedUpload> next{};  ///< from where the next page begins
};
/// Error: kCorruption.
Result<UploadPage> upload_page_of(std::string_view body);

}  // namespace verger::object_store::detail
