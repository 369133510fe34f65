#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>

#include "engine/base/clock.h"
#include "planner/detail/gate_checks.h"

namespace verger::planner::detail {

void clocks(const Look& look, States& out) {
  const NodeSnapshot* worst = nullptr;
  const auto limit = fmt::format("{} ms", look.gate.limit);
  for (const auto& node : look.snapshot.nodes) {
    if (!node.clock || !is_up(node)) {
      continue;
    }
    // What the question itself may have cost is not held against the clock.
    const auto ahead = node.clock->ahead_ms;
    const auto off = std::max<std::int64_t>(std::abs(ahead) - node.clock->error_ms, 0);
    if (worst == nullptr || std::abs(ahead) > std::abs(worst->clock->ahead_ms)) {
      worst = &node;
    }
    if (off > look.gate.limit) {
      out.push_back(measured(closed(look.gate.name, "clock-skew", node.name,
                                    fmt::format("its clock is {} ms {} the controller's",
                                                std::abs(ahead), ahead > 0 ? "ahead of" : "behind"),
                                    "set both clocks by NTP; windows and certificates go by them"),
                             fmt::format("{} ms", std::abs(ahead)), limit));
    }
  }
  if (look.wants_value(out) && worst != nullptr) {
    out.push_back(
        opened(look, fmt::format("{} ms", std::abs(worst->clock->ahead_ms)), limit, worst->name));
  }
}

void certificates(const Look& look, States& out) {
  const auto needed =
      look.snapshot.taken_at.value() + (look.lasts_ms + look.gate.limit) * kTicksPerMillisecond;
  const NodeSnapshot* first = nullptr;
  Ticks earliest;
  const auto judge = [&](const NodeSnapshot& node, const std::string& what, Ticks not_after) {
    if (first == nullptr || not_after < earliest) {
      first = &node;
      earliest = not_after;
    }
    if (not_after.value() >= needed) {
      return;
    }
    const bool over = not_after < look.snapshot.taken_at;
    out.push_back(measured(
        closed(look.gate.name, over ? "certificate-expired" : "certificate-expires", node.name,
               fmt::format("{} {} at {}; it is needed until {}", what, over ? "expired" : "expires",
                           format_ticks(not_after), format_ticks(Ticks(needed))),
               "renew it and reload"),
        "until " + format_ticks(not_after), "until " + format_ticks(Ticks(needed))));
  };
  for (const auto& node : look.snapshot.nodes) {
    for (const auto& certificate : node.certificates) {
      judge(node, fmt::format("the certificate of its {}", certificate.of), certificate.not_after);
      if (!certificate.issuer.empty()) {
        judge(node,
              fmt::format("{}, which vouches for the certificate of its {},", certificate.issuer,
                          certificate.of),
              certificate.issuer_not_after);
      }
    }
  }
  if (look.wants_value(out) && first != nullptr) {
    out.push_back(opened(look, "until " + format_ticks(earliest),
                         "until " + format_ticks(Ticks(needed)), first->name));
  }
}

void queries(const Look& look, States& out) {
  for (const auto& query : look.snapshot.queries) {
    if (query.holds) {
      if (!look.values) {
        continue;
      }
      out.push_back(opened(look, query.value, query.limit));
      out.back().gate = fmt::format("{}:{}", look.gate.name, query.name);
      continue;
    }
    const bool unknown = query.value.empty();
    out.push_back(measured(closed(fmt::format("{}:{}", look.gate.name, query.name),
                                  unknown ? "query-unknown" : "query-out-of-bounds", "",
                                  unknown ? fmt::format("query {}: {}", query.name, query.problem)
                                          : fmt::format("query {} gives {}, the limit is {}",
                                                        query.name, query.value, query.limit),
                                  unknown ? "check the query, and what answers it" : "wait"),
                           unknown ? "unknown" : query.value, query.limit));
  }
}

void maintenance_window(const Look& look, States& out) {
  if ((!look.snapshot.hours || look.snapshot.hours->open) && !look.values) {
    return;
  }
  if (!look.snapshot.hours) {
    out.push_back(opened(look, "no windows", ""));
    return;
  }
  const auto& now = *look.snapshot.hours;
  if (now.open) {
    out.push_back(opened(look, "open since " + format_ticks(now.since),
                         now.until ? "open until " + format_ticks(*now.until) : std::string()));
    return;
  }
  const auto until = now.until ? format_ticks(*now.until) : std::string("further notice");
  out.push_back(measured(closed(look.gate.name, "outside-hours", "",
                                fmt::format("{}; closed until {}", now.reason, until),
                                "it resumes by itself when the window opens"),
                         "closed since " + format_ticks(now.since), "open from " + until));
}

}  // namespace verger::planner::detail
