// $all over HTTP, whole and filtered: node-interface.md §1.11.
#include <algorithm>
#include <regex>

#include <nlohmann/json.hpp>

#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/detail/stream_routes.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;

/// As many events a filtered read forward looks at before it answers with what it has; a read
/// backward looks at as many as are requested.
constexpr std::size_t kForwardWindow = 1000;
constexpr std::size_t kMostName = 1024;

/// Which events a filtered read keeps.
class Filter {
 public:
  /// The error is the answer's text.
  static std::expected<Filter, std::string> parse(const http::Target& target) {
    Filter filter;
    if (const auto exclude = target.parameter("exclude-system-events")) {
      if (!parse_boolean(*exclude).value_or(false)) {
        return std::unexpected("exclude-sytem-events should have a value of true.");  // so spelled
      }
      filter.by_stream_ = false;
      filter.patterns_.emplace_back(R"(^[^\$].*)");
      return filter;
    }
    const auto named = [&](std::string_view parameter, std::string_view name) {
      auto text = std::string(target.parameter(parameter).value_or(""));
      std::ranges::transform(text, text.begin(),
                             [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      return text == name;
    };
    filter.by_stream_ = named("context", "streamid");
    if (!filter.by_stream_ && !named("context", "eventtype")) {
      return std::unexpected(
          "Invalid context please provide one of the following: StreamId, EventType.");
    }
    const bool by_prefix = named("type", "prefix");
    if (!by_prefix && !named("type", "regex")) {
      return std::unexpected("Invalid type please provide one of the following: Regex, Prefix.");
    }
    auto data = target.parameter("data").value_or("");
    if (data.empty()) {
      return std::unexpected(
          "Please provide a comma delimited list of data with at least one item.");
    }
    if (!by_prefix) {
      try {
        filter.patterns_.emplace_back(std::string(data));
      } catch (const std::regex_error&) {
        return std::unexpected(fmt::format("Invalid pattern '{}'.", data));
      }
      return filter;
    }
    while (true) {
      const auto comma = data.find(',');
      filter.prefixes_.emplace_back(data.substr(0, comma));
      if (comma == std::string_view::npos) {
        return filter;
      }
      data.remove_prefix(comma + 1);
    }
  }

  [[nodiscard]] bool keeps(const streams::Event& event) const {
    // Names are short; the matcher's depth grows with the text, so of a monster the start counts.
    const auto text = (by_stream_ ? event.stream : event.type).substr(0, kMostName);
    return std::ranges::any_of(prefixes_,
                               [&](const std::string& each) { return text.starts_with(each); }) ||
           std::ranges::any_of(
               patterns_, [&](const std::regex& each) { return std::regex_search(text, each); });
  }

 private:
  bool by_stream_ = true;
  std::vector<std::string> prefixes_;
  std::vector<std::regex> patterns_;
};

struct Question {
  streams::AllPosition position;
  std::size_t count = kDefaultCount;
  bool ahead = false;
  std::optional<Filter> filter{};
};

Result<streams::AllSlice> read(Core& core, const Question& question) {
  const auto page = [&](streams::AllPosition from, std::size_t count) {
    return question.ahead ? core.db().read_all_forward(from, count)
                          : core.db().read_all_backward(from, count);
  };
  if (!question.filter) {
    return page(question.position, question.count);
  }
  streams::AllSlice found;
  found.next = question.position;
  auto window = question.ahead ? kForwardWindow : question.count;
  while (found.events.size() < question.count && window > 0 && !found.end) {
    const auto wanted = std::min(question.count - found.events.size(), window);
    VERGER_TRY(auto slice, page(found.next, wanted));
    found.next = slice.next;
    found.end = slice.end;
    window -= std::min(window, std::max<std::size_t>(slice.events.size(), 1));
    for (auto& event : slice.events) {
      if (question.filter->keeps(event)) {
        found.events.push_back(std::move(event));
      }
    }
  }
  return found;
}

net::awaitable<Response> read_all(std::shared_ptr<Core> core, RoutedRequest routed, bool ahead,
                                  bool filtered) {
  const std::string_view methods =
      routed.target.segments.size() == 2 ? "POST, DELETE, GET, GET, OPTIONS" : "GET, GET, OPTIONS";
  const auto bad = [&](std::string text) {
    return text_response(400, std::move(text), methods, false);
  };
  const auto format = choose_format(routed, kFeedFormats);
  if (!format) {
    co_return format.error();
  }
  Question question{.position = {}, .ahead = ahead};
  if (filtered) {
    auto filter = Filter::parse(routed.target);
    if (!filter) {
      co_return bad(filter.error());
    }
    question.filter = *std::move(filter);
  }
  const auto text = routed.parameter("position");
  const bool head = !ahead && (text.empty() || text == "head");
  auto end = core->db().committed();
  const auto position =
      head ? std::optional(streams::AllPosition{end, end}) : atom::parse_position(text);
  if (!position || position->commit.value() < 0 || position->prepare.value() < 0) {
    co_return bad(fmt::format("Invalid position argument: {}", text));
  }
  question.position = *position;
  const auto count_text = routed.parameter("count");
  const auto count = count_text.empty() ? std::optional(static_cast<std::int32_t>(kDefaultCount))
                                        : parse_number<std::int32_t>(count_text);
  if (!count || *count <= 0) {
    co_return bad(fmt::format("Invalid count argument: {}", count_text));
  }
  const auto headers =
      stream_headers(routed.request,
                     filtered ? (ahead ? HeadersOf::kFilteredForward : HeadersOf::kFiltered)
                     : ahead  ? HeadersOf::kPageForward
                              : HeadersOf::kPage,
                     methods);
  if (!headers) {
    co_return headers.error();
  }
  if (auto elsewhere = redirect(*core, routed.request, *headers, methods)) {
    co_return *std::move(elsewhere);
  }
  if (auto refused = too_many(*count, methods)) {
    co_return *std::move(refused);
  }
  if (auto same = not_modified(routed.request, end.value(), format->media_type, methods)) {
    co_return *std::move(same);
  }
  question.count = static_cast<std::size_t>(*count);
  auto slice = read(*core, question);
  const auto until = core->now() + headers->long_poll;
  while (ahead && slice && slice->end && slice->events.empty() &&
         co_await wait_for_more(core, end, until)) {
    end = core->db().committed();
    slice = read(*core, question);
  }
  if (!slice) {
    co_return read_failure(*core, slice.error(), methods);
  }
  const atom::PageContext context{base_url(*core, routed.request),
                                  filtered ? "$all/filtered" : "$all", question.count,
                                  atom::embed_of(routed.target)};
  const auto* links = filtered || headers->resolve_links ? &core->db() : nullptr;
  const auto page = ahead ? atom::all_forward_page(context, *slice, *position, links)
                          : atom::all_backward_page(context, *slice, *position, links);
  const bool for_ever =
      ahead ? slice->events.size() == question.count : !head && position->commit <= end;
  co_return cached(formatted(*format, written_feed(page, format->format), methods), for_ever,
                   end.value(), format->media_type);
}

}  // namespace

void add_all_routes(http::Router& router, const std::shared_ptr<Core>& core) {
  const auto add = [&](std::string_view pattern, bool ahead, bool filtered) {
    add_stream_route(router, core, "GET", pattern, StreamAction::kRead, kFeedFormats, {},
                     [ahead, filtered](std::shared_ptr<Core> node, RoutedRequest request) {
                       return read_all(std::move(node), std::move(request), ahead, filtered);
                     });
  };
  for (const bool filtered : {false, true}) {
    const std::string base = filtered ? "/streams/$all/filtered" : "/streams/$all";
    add(base, false, filtered);
    add(base + "/{position}/{count}", false, filtered);
    add(base + "/{position}/backward/{count}", false, filtered);
    add(base + "/{position}/forward/{count}", true, filtered);
  }
}

}  // namespace verger::node
