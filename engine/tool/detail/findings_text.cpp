#include "engine/tool/detail/findings_text.h"

#include <ostream>

#include <nlohmann/json.hpp>

#include "engine/tool/table.h"

namespace verger::tool {

void print_findings(ToolContext& tool, const verify::Findings& findings) {
  for (const auto& finding : findings.all()) {
    if (tool.json) {
      nlohmann::ordered_json line = {{"finding", finding.damage ? "damage" : "note"},
                                     {"file", finding.file}};
      if (finding.offset) {
        line["offset"] = *finding.offset;
      }
      line["text"] = finding.text;
      tool.out << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    } else {
      tool.out << fmt::format(
          "{}: {}{}: {}\n", finding.damage ? "DAMAGE" : "note", printable(finding.file),
          finding.offset ? fmt::format(" at {}", *finding.offset) : "", printable(finding.text));
    }
  }
  for (const auto& kind : findings.kinds()) {
    if (kind.count > kind.listed && !tool.json) {
      tool.out << fmt::format("DAMAGE: … and {} more of the kind \"{}\"\n",
                              human_count(kind.count - kind.listed), kind.name);
    }
  }
}

}  // namespace verger::tool
