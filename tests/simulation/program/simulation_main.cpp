#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <fmt/format.h>
#include <iostream>

#include "tests/simulation/control/simulation.h"

namespace {

using namespace verger;

/// One of the two simulations.
struct Kind {
  std::string_view name;
  sim::RunResult (*simulate)(const sim::RunOptions&);
  std::vector<std::string_view> (*broken_builds)();
};

constexpr std::array<Kind, 2> kKinds = {{
    {"control", &sim::simulate_control, &sim::broken_control_builds},
    {"full", &sim::simulate, &sim::broken_builds},
}};

struct Arguments {
  std::uint64_t runs = 100;
  std::uint64_t seed = 1;
  bool trace = false;
  bool no_faults = false;
  std::string kind{};  ///< empty: both
  std::string broken{};

  [[nodiscard]] bool wants(const Kind& what) const {
    return (kind.empty() || kind == what.name) && (broken.empty() || can_be_broken(what));
  }
  [[nodiscard]] bool can_be_broken(const Kind& what) const {
    const auto names = what.broken_builds();
    return std::ranges::find(names, broken) != names.end();
  }
};

constexpr int kUsage = 64;

void usage(std::ostream& out) {
  out << "usage: simulation [--runs N] [--seed S] [--kind full|control] [--trace] [--no-faults]\n"
         "                  [--broken NAME]\n"
         "Runs N simulated clusters of each kind with the seeds S, S+1, ...\n"
         "  control  controllers and agents over models of nodes\n"
         "  full     controller, agents and embedded nodes\n";
  for (const auto& kind : kKinds) {
    out << "Names of broken builds, " << kind.name << ":";
    for (const auto name : kind.broken_builds()) {
      out << ' ' << name;
    }
    out << '\n';
  }
}

bool parse_number(const char* text, std::uint64_t& into) {
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), into);
  return error == std::errc() && end == view.data() + view.size();
}

/// nullopt: usage was shown.
std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (name == "--trace") {
      arguments.trace = true;
    } else if (name == "--no-faults") {
      arguments.no_faults = true;
    } else if (name == "--runs" && value != nullptr && parse_number(value, arguments.runs)) {
      ++i;
    } else if (name == "--seed" && value != nullptr && parse_number(value, arguments.seed)) {
      ++i;
    } else if (name == "--broken" && value != nullptr) {
      arguments.broken = value;
      ++i;
    } else if (name == "--kind" && value != nullptr &&
               (std::string_view(value) == "full" || std::string_view(value) == "control")) {
      arguments.kind = value;
      ++i;
    } else {
      std::cerr << "simulation: " << name << ": not an option, or its value is missing or wrong\n";
      return std::nullopt;
    }
  }
  if (std::ranges::none_of(kKinds, [&](const Kind& kind) { return arguments.wants(kind); })) {
    std::cerr << "simulation: --broken " << arguments.broken << ": no such build\n";
    return std::nullopt;
  }
  return arguments;
}

std::uint64_t run(const Arguments& arguments, const Kind& kind) {
  sim::Summary summary;
  const auto started = std::chrono::steady_clock::now();
  const auto worked = std::clock();
  for (std::uint64_t i = 0; i < arguments.runs; ++i) {
    const auto seed = arguments.seed + i;
    const auto result = kind.simulate({.seed = seed,
                                       .faults = !arguments.no_faults,
                                       .broken = arguments.broken,
                                       .trace = arguments.trace ? &std::cout : nullptr});
    summary.add(result);
    if (arguments.trace) {
      std::cout << fmt::format(
          "seed {}: {} {}; faults: {}; {} virtual ms, {} events, trace {:016x}\n", seed,
          result.state, result.reason, result.chosen, result.duration.count(), result.events,
          result.trace_hash);
    }
    for (const auto& violation : result.violations) {
      std::cout << fmt::format("seed {}: VIOLATION: {}\n", seed, violation);
    }
    if (!result.violations.empty()) {
      std::cout << fmt::format(
                       "seed {}: replay: ./dev sim --kind {} --runs 1 --seed {} --trace{}{}\n",
                       seed, kind.name, seed, arguments.no_faults ? " --no-faults" : "",
                       arguments.broken.empty() ? "" : " --broken " + arguments.broken)
                << std::flush;
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  const auto busy = static_cast<double>(std::clock() - worked) / CLOCKS_PER_SEC;
  const auto rate = [&summary](double seconds) {
    return static_cast<double>(summary.runs) / std::max(seconds, 1e-9);
  };
  summary.print(std::cout);
  std::cout << fmt::format(
                   "{} runs, {} violations, {:.1f} runs/s, {:.1f} per second of a core, {}\n",
                   summary.runs, summary.violations, rate(took.count()), rate(busy), kind.name)
            << std::flush;
  return summary.violations;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    usage(std::cout);
    return 0;
  }
  const auto arguments = parse(argc, argv);
  if (!arguments) {
    usage(std::cerr);
    return kUsage;
  }
  std::uint64_t violations = 0;
  for (const auto& kind : kKinds) {
    violations += arguments->wants(kind) ? run(*arguments, kind) : 0;
  }
  return violations == 0 ? 0 : 1;
}
