#include "controller/cli/run_gates_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/run_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

namespace verger::cli {

using nlohmann::json;

void print_run_gates(const CliContext& context, const json& gates) {
  const auto steps = list_of(gates, "steps");
  context.out << fmt::format("run {}\n", text_of(gates, "run"));
  if (steps.empty()) {
    context.out << "no step waits, and none that is under way began since vergerd's start\n";
  }
  for (const auto& step : steps) {
    const auto evaluated = time_of(step, "evaluated_at");
    context.out << fmt::format(
        "{} {}, gates {}\n", text_of(step, "step"), text_of(step, "state"),
        evaluated == "-" ? "not checked since vergerd's start" : "checked at " + evaluated);
    Table table({{"gate"},
                 {"node"},
                 {"state"},
                 {"now", Table::Align::kWrap},
                 {"limit", Table::Align::kWrap},
                 {"since"},
                 {"why", Table::Align::kWrap}});
    for (const auto& gate : list_of(step, "gates")) {
      auto state = text_of(gate, "state");
      std::ranges::replace(state, '_', ' ');
      table.add({text_of(gate, "gate"), text_of(gate, "node"), std::move(state),
                 text_of(gate, "value"), text_of(gate, "limit"), time_of(gate, "since"),
                 text_of(gate, "reason")});
    }
    context.print(table);
  }
}

}  // namespace verger::cli
