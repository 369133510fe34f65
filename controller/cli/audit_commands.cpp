#include <fmt/format.h>
#include <functional>
#include <map>
#include <optional>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

// audit list | verify | export
namespace verger::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kVerifyDeadline{600};

/// Calls `each` with every entry from the beginning; what went wrong is nullopt's opposite.
std::optional<CallFailure> for_each_entry(const CliContext& context, bool all,
                                          const std::function<void(const json&)>& each) {
  std::int64_t after = 0;
  for (;;) {
    const auto answer =
        context.api.get(fmt::format("/audit?after={}{}", after, all ? "&all=true" : ""));
    if (!answer) {
      return answer.error();
    }
    for (const auto& entry : list_of(*answer, "entries")) {
      each(entry);
    }
    const auto next = number_of(*answer, "next");
    if (next <= after) {
      return std::nullopt;
    }
    after = next;
  }
}

/// A caller's request, and how it was answered.
struct Asked {
  json entry{};
  std::int64_t status = 0;  ///< 0: not known
};

/// "orders" of "/api/v1/clusters/orders/plans"
std::string target_of(const json& data) {
  const auto target = text_of(data, "target");
  constexpr std::string_view kRoot = "/api/v1/";
  return target.starts_with(kRoot) ? target.substr(kRoot.size()) : target;
}

std::string result_text(std::int64_t status) {
  return status == 0                     ? "not known"
         : status >= 200 && status < 300 ? "done"
                                         : fmt::format("refused ({})", status);
}

int list_audit(const CliContext& context, std::size_t last) {
  std::map<std::int64_t, Asked> asked;
  const auto failed = for_each_entry(context, false, [&](const json& entry) {
    const auto data = entry.value("data", json::object());
    if (text_of(entry, "type") == "audit-asked") {
      asked[number_of(entry, "sequence")].entry = entry;
      if (last > 0 && asked.size() > last) {
        asked.erase(asked.begin());
      }
    } else if (text_of(entry, "type") == "audit-answered") {
      if (const auto found = asked.find(number_of(data, "asked")); found != asked.end()) {
        found->second.status = number_of(data, "status");
      }
    }
  });
  if (failed) {
    return context.fail(*failed);
  }
  Table table({{"time"},
               {"who"},
               {"role"},
               {"from"},
               {"what"},
               {"of", Table::Align::kWrap},
               {"result"},
               {"why", Table::Align::kWrap}});
  for (const auto& [sequence, one] : asked) {
    const auto data = one.entry.value("data", json::object());
    if (context.json) {
      auto out = data;
      out["sequence"] = sequence;
      out["time"] = text_of(one.entry, "time");
      out["status"] = one.status == 0 ? json() : json(one.status);
      context.out << out.dump() << '\n';
      continue;
    }
    table.add({time_of(one.entry, "time"), text_of(data, "by"), text_of(data, "role"),
               text_of(data, "from"), text_of(data, "route"), target_of(data),
               result_text(one.status), text_of(data, "reason")});
  }
  if (!context.json) {
    context.print(table);
  }
  return kDone;
}

int verify_audit(const CliContext& context) {
  const auto answer = context.api.get("/audit/verify", kVerifyDeadline);
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << answer->dump() << '\n';
  } else {
    context.out << fmt::format(
        "{} events: each is what was written, in its order\nthe last one has the hash {}\n",
        with_separators(number_of(*answer, "verified")), text_of(*answer, "last_hash"));
  }
  return kDone;
}

/// One JSON object a line, regardless of -o: an export is for machines. What is not what was
/// written is exported, too, but with a message; so is anything that is left out.
int export_audit(const CliContext& context, bool all) {
  std::int64_t exported = 0;
  const auto failed = for_each_entry(context, all, [&](const json& entry) {
    context.out << entry.dump() << '\n';
    ++exported;
  });
  if (failed) {
    return context.fail(*failed);
  }
  const auto verified = context.api.get("/audit/verify", kVerifyDeadline);
  if (!verified) {
    return context.fail(verified.error());
  }
  const auto there = number_of(*verified, "verified");
  context.err << fmt::format(
      "verger: {} of {} events exported; {}\n", with_separators(exported), with_separators(there),
      exported == there && !all ? "each records a request or a decision"
      : all ? "left out of them: what tokens are checked by, and answers kept for idempotency keys"
            : "left out: what the controller did by itself (steps, progress); --all exports that "
              "too");
  return kDone;
}

}  // namespace

void add_audit_commands(CLI::App& app, Command& chosen) {
  auto* audit = app.add_subcommand("audit", "Who asked for what, from where, and why");
  audit->require_subcommand(1);
  auto last = std::make_shared<std::size_t>(100);
  auto* list = audit->add_subcommand("list", "What people and programs asked for, oldest first");
  list->add_option("--last", *last, "Only the newest so many (0: all)")->capture_default_str();
  list->callback([last, &chosen] {
    chosen = [last](const CliContext& context) { return list_audit(context, *last); };
  });
  audit->add_subcommand("verify", "Walk the hash chain of the journal")->callback([&chosen] {
    chosen = verify_audit;
  });
  auto all = std::make_shared<bool>(false);
  auto* exported = audit->add_subcommand(
      "export", "Requests and decisions, each with its hash, one JSON object a line");
  exported->add_flag("--all", *all, "Every event of the journal");
  exported->callback([all, &chosen] {
    chosen = [all](const CliContext& context) { return export_audit(context, *all); };
  });
}

}  // namespace verger::cli
