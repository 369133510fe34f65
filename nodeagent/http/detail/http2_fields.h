#pragma once

#include <nghttp2/nghttp2.h>
#include <string>
#include <utility>
#include <vector>

#include "nodeagent/http/message.h"

namespace verger::http {

using Http2Fields = std::vector<std::pair<std::string, std::string>>;

/// Fields as HTTP/2 has them: names in lower case, none that concerns a connection.
Http2Fields http2_fields(const Headers& headers);
/// For the library, which copies them before it returns; `fields` has to live until then.
std::vector<nghttp2_nv> name_values(const Http2Fields& fields);

}  // namespace verger::http
