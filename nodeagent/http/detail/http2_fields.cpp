#include "nodeagent/http/detail/http2_fields.h"

#include <algorithm>
#include <cctype>

namespace verger::http {

Http2Fields http2_fields(const Headers& headers) {
  Http2Fields out;
  for (const auto& [name, value] : headers.all()) {
    std::string lower(name);
    std::ranges::transform(lower, lower.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (lower != "connection" && lower != "transfer-encoding" && lower != "keep-alive") {
      out.emplace_back(std::move(lower), value);
    }
  }
  return out;
}

std::vector<nghttp2_nv> name_values(const Http2Fields& fields) {
  std::vector<nghttp2_nv> list;
  list.reserve(fields.size());
  for (const auto& [name, value] : fields) {
    // It writes to neither.
    list.push_back({.name = reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
                    .value = reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
                    .namelen = name.size(),
                    .valuelen = value.size(),
                    .flags = NGHTTP2_NV_FLAG_NONE});
  }
  return list;
}

}  // namespace verger::http
