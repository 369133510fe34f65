#include "engine/tool/explain_command.h"

#include <charconv>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/scavenge/explain.h"
#include "engine/tool/detail/preview_setup.h"
#include "engine/tool/stop_signals.h"
#include "engine/tool/table.h"

namespace verger::tool {
namespace {

using nlohmann::ordered_json;
using scavenge::Explanation;

struct ExplainOptions {
  PreviewArguments preview;
  std::vector<std::string> events;
  std::vector<std::int64_t> positions;
  std::size_t limit = 1000;
};

/// "orders-7@12": behind the last @ stand digits only. "orders-7": all of the stream.
struct Wanted {
  std::string stream;
  EventNumber from{0};
  EventNumber to = kDeletedStream;
};

Wanted parse_wanted(const std::string& text) {
  const auto at = text.rfind('@');
  std::int64_t number = 0;
  if (at != std::string::npos && at > 0) {
    const auto* begin = text.data() + at + 1;
    const auto* end = text.data() + text.size();
    const auto [last, error] = std::from_chars(begin, end, number);
    if (error == std::errc() && last == end && number >= 0) {
      return {text.substr(0, at), EventNumber(number), EventNumber(number)};
    }
  }
  return {.stream = text};
}

std::string_view outcome(const Explanation& one) {
  return !one.in_log ? "gone already" : one.stays ? "stays" : "goes";
}

std::string_view rule(const Explanation& one) {
  return one.removed_by ? to_string(*one.removed_by)
         : one.kept_by  ? to_string(*one.kept_by)
                        : "gone";
}

ordered_json to_json(const Explanation& one, const streams::ScavengePoint& point) {
  ordered_json json = {{"stream", one.stream},
                       {"eventNumber", one.number.value()},
                       {"position", one.position.value()},
                       {"chunkFile", one.chunk_file},
                       {"inLog", one.in_log},
                       {"stays", one.stays},
                       {"rule", rule(one)},
                       {"removedByRules", one.removed_by.has_value()},
                       {"reason", one.reason},
                       {"missing", one.missing},
                       {"chunkWeight", one.weight},
                       {"threshold", point.threshold},
                       {"chunkExecuted", one.chunk_executed},
                       {"lastEventNumber", one.last.value()},
                       {"discardBefore", one.discard.first_kept()},
                       {"maybeDiscardBefore", one.maybe.first_kept()}};
  if (one.in_log) {
    json["type"] = one.type;
    json["time"] = format_ticks(one.timestamp);
  }
  json["indexEntryStays"] = one.entry_stays ? ordered_json(*one.entry_stays) : ordered_json();
  if (one.limits) {
    const auto value = [](const std::optional<std::int64_t>& limit) {
      return limit ? ordered_json(*limit) : ordered_json();
    };
    json["limits"] = {{"maxCount", value(one.limits->max_count)},
                      {"maxAge", value(one.limits->max_age_seconds)},
                      {"truncateBefore", value(one.limits->truncate_before)},
                      {"deleted", one.limits->tombstoned}};
  }
  if (one.expires) {
    json["expires"] = format_ticks(*one.expires);
  }
  if (one.decider) {
    json["decidedBy"] = {{"what", one.decider->what},
                         {"stream", one.decider->stream},
                         {"eventNumber", one.decider->number.value()},
                         {"position", one.decider->position.value()},
                         {"chunkFile", one.decider->chunk_file}};
  }
  return json;
}

void print_one(const Explanation& one, const streams::ScavengePoint& point, std::ostream& out) {
  out << fmt::format("{}@{} {}: {}\n", printable(one.stream), one.number, outcome(one), one.reason);
  if (!one.missing.empty()) {
    out << fmt::format("  missing     {}\n", one.missing);
  }
  out << fmt::format("  rule        {}\n", rule(one));
  if (one.decider) {
    out << fmt::format("  decided by  {} {}@{} at log position {} in {}\n", one.decider->what,
                       printable(one.decider->stream), one.decider->number, one.decider->position,
                       one.decider->chunk_file.empty() ? "no chunk yet" : one.decider->chunk_file);
  }
  out << fmt::format("  record      log position {} in {}", one.position,
                     one.chunk_file.empty() ? "no chunk" : one.chunk_file);
  if (one.in_log) {
    out << fmt::format(", {} of {}", printable(one.type), format_ticks(one.timestamp));
  }
  out << fmt::format("\n  chunk       weight {:.0f}, threshold {}: {}\n", one.weight,
                     point.threshold, one.chunk_executed ? "rewritten" : "not rewritten");
  if (one.entry_stays) {
    out << fmt::format("  index       its entry {}\n", *one.entry_stays ? "stays" : "goes");
  } else {
    out << "  index       it has no entry\n";
  }
  if (one.limits) {
    out << fmt::format("  stream      last event {}", one.last);
    const auto add = [&](std::string_view name, const std::optional<std::int64_t>& limit) {
      if (limit) {
        out << fmt::format(", {} {}", name, *limit);
      }
    };
    add("$maxCount", one.limits->max_count);
    add("$maxAge", one.limits->max_age_seconds);
    add("$tb", one.limits->truncate_before);
    out << (one.limits->tombstoned ? ", deleted\n" : "\n");
  }
}

void print_stream(const std::vector<Explanation>& events, std::ostream& out) {
  using enum Table::Align;
  Table table({{"EVENT", kRight}, {"POSITION", kRight}, {"OUTCOME"}, {"RULE"}, {"REASON"}});
  std::size_t stay = 0;
  for (const auto& one : events) {
    table.add({fmt::format("{}", one.number), fmt::format("{}", one.position),
               std::string(outcome(one)), std::string(rule(one)),
               one.removed_by && one.stays ? one.missing : one.reason});
    stay += one.stays ? 1 : 0;
  }
  out << fmt::format("{}: of {} events {} stay\n", printable(events.front().stream), events.size(),
                     stay);
  table.print(out);
}

Result<int> run(ToolContext& tool, const ExplainOptions& options) {
  if (options.events.empty() && options.positions.empty()) {
    return Error{Errc::kInvalidArgument,
                 "which event? Give STREAM@NUMBER, STREAM, or --position POSITION"};
  }
  const StopSignals signals;
  VERGER_TRY(const auto opened, open_preview(tool, options.preview));
  const auto& point = opened.preview->point();
  scavenge::Explainer explainer(*opened.preview);
  if (tool.json) {
    tool.out << ordered_json{{"point", point_json(opened)}}.dump() << '\n';
  } else {
    tool.out << point_text(opened) << "\n\n";
  }
  const auto show = [&](const std::vector<Explanation>& events, bool whole_stream) {
    if (tool.json) {
      for (const auto& one : events) {
        tool.out << to_json(one, point).dump(-1, ' ', false, ordered_json::error_handler_t::replace)
                 << '\n';
      }
    } else if (whole_stream) {
      print_stream(events, tool.out);
    } else {
      for (const auto& one : events) {
        print_one(one, point, tool.out);
      }
    }
  };
  std::size_t missing = 0;
  /// What is not there is said, and the others are explained all the same.
  const auto say_missing = [&](const Error& error, ordered_json asked) -> Result<void> {
    if (error.code != Errc::kNotFound) {
      return error;
    }
    ++missing;
    if (tool.json) {
      asked["error"] = error.message;
      tool.out << asked.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
    } else {
      tool.out << printable(error.message) << '\n';
    }
    return {};
  };
  for (const auto& text : options.events) {
    VERGER_RETURN_IF_ERROR(StopSignals::check());
    const auto wanted = parse_wanted(text);
    const bool is_one = wanted.from == wanted.to;
    const auto events = explainer.stream(wanted.stream, wanted.from, wanted.to, options.limit);
    if (events) {
      show(*events, !is_one);
      continue;
    }
    ordered_json asked = {{"stream", wanted.stream}};
    if (is_one) {
      asked["eventNumber"] = wanted.from.value();
    }
    VERGER_RETURN_IF_ERROR(say_missing(events.error(), std::move(asked)));
  }
  for (const auto position : options.positions) {
    if (const auto one = explainer.record(LogPosition(position)); one) {
      show({*one}, false);
    } else {
      VERGER_RETURN_IF_ERROR(say_missing(one.error(), {{"position", position}}));
    }
  }
  if (missing > 0) {
    tool.err << fmt::format("verger-db: {} of {} are not there\n", missing,
                            options.events.size() + options.positions.size());
  }
  return missing > 0 ? kExitFailed : kExitDone;
}

}  // namespace

void add_explain_command(CLI::App& program, Action& chosen) {
  auto options = std::make_shared<ExplainOptions>();
  auto* command = program.add_subcommand(
      "explain",
      "Tell whether events stay or go in the next scavenge, by which rule, which record decides, "
      "and what is still missing. Changes nothing; a node may have the database open");
  add_preview_arguments(*command, options->preview);
  command->add_option("STREAM[@N]", options->events,
                      "Event N of a stream; without @N, the whole stream");
  command->add_option("--position", options->positions, "The record at this log position");
  command->add_option("--limit", options->limit,
                      "At most so many events of a whole stream (default 1000)");
  command->footer(
      "Exit code 1 where an event is not there; the others are explained all the same.\n"
      "Example:\n  verger-db explain /var/lib/eventstore orders-7@12");
  command->callback([options, &chosen] {
    chosen = [options](ToolContext& tool) { return run(tool, *options); };
  });
}

}  // namespace verger::tool
