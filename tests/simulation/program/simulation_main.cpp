#include <algorithm>
#include <charconv>
#include <chrono>
#include <fmt/format.h>
#include <iostream>

#include "tests/simulation/control/simulation.h"

namespace {

using namespace verger;

struct Arguments {
  std::uint64_t runs = 100;
  std::uint64_t seed = 1;
  bool trace = false;
  bool no_faults = false;
  bool control = false;
  std::string broken{};

  [[nodiscard]] std::vector<std::string_view> broken_builds() const {
    return control ? sim::broken_control_builds() : sim::broken_builds();
  }
};

constexpr int kUsage = 64;

void usage(std::ostream& out) {
  out << "usage: simulation [--runs N] [--seed S] [--kind full|control] [--trace] [--no-faults]\n"
         "                  [--broken NAME]\n"
         "Runs N simulated clusters with the seeds S, S+1, ...\n"
         "  full     (default) controller, agents and embedded nodes\n"
         "  control  controllers and agents over models of nodes\n";
  for (const bool control : {false, true}) {
    out << "Names of broken builds, " << (control ? "control:" : "full:");
    for (const auto name : Arguments{.control = control}.broken_builds()) {
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

bool is_broken_build(const Arguments& arguments) {
  const auto names = arguments.broken_builds();
  return arguments.broken.empty() || std::ranges::find(names, arguments.broken) != names.end();
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
      arguments.control = std::string_view(value) == "control";
      ++i;
    } else {
      std::cerr << "simulation: " << name << ": not an option, or its value is missing or wrong\n";
      return std::nullopt;
    }
  }
  if (!is_broken_build(arguments)) {
    std::cerr << "simulation: --broken " << arguments.broken << ": no such build\n";
    return std::nullopt;
  }
  return arguments;
}

int run(const Arguments& arguments) {
  sim::Summary summary;
  const auto started = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < arguments.runs; ++i) {
    const auto seed = arguments.seed + i;
    const sim::RunOptions options{.seed = seed,
                                  .faults = !arguments.no_faults,
                                  .broken = arguments.broken,
                                  .trace = arguments.trace ? &std::cout : nullptr};
    const auto result = arguments.control ? sim::simulate_control(options) : sim::simulate(options);
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
      std::cout << fmt::format("seed {}: replay: ./dev sim --runs 1 --seed {}{} --trace{}{}\n",
                               seed, seed, arguments.control ? " --kind control" : "",
                               arguments.no_faults ? " --no-faults" : "",
                               arguments.broken.empty() ? "" : " --broken " + arguments.broken)
                << std::flush;
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  summary.print(std::cout);
  std::cout << fmt::format("{} runs, {} violations, {:.1f} runs/s\n", summary.runs,
                           summary.violations,
                           static_cast<double>(summary.runs) / std::max(took.count(), 1e-9));
  return summary.violations == 0 ? 0 : 1;
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
  return run(*arguments);
}
