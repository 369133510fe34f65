#include <algorithm>
#include <charconv>
#include <chrono>
#include <fmt/format.h>
#include <iostream>

#include "tests/simulation/full/simulation.h"

namespace {

using namespace verger;

struct Arguments {
  std::uint64_t runs = 100;
  std::uint64_t seed = 1;
  bool trace = false;
  bool no_faults = false;
  std::string broken;
};

constexpr int kUsage = 64;

void usage(std::ostream& out) {
  out << "usage: simulation [--runs N] [--seed S] [--trace] [--no-faults] [--broken NAME]\n"
         "Runs N simulated clusters with the seeds S, S+1, ... Names of broken builds:";
  for (const auto name : sim::broken_builds()) {
    out << ' ' << name;
  }
  out << '\n';
}

bool parse_number(const char* text, std::uint64_t& into) {
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), into);
  return error == std::errc() && end == view.data() + view.size();
}

bool is_broken_build(std::string_view name) {
  const auto names = sim::broken_builds();
  return std::ranges::find(names, name) != names.end();
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
    } else if (name == "--broken" && value != nullptr && is_broken_build(value)) {
      arguments.broken = value;
      ++i;
    } else {
      std::cerr << "simulation: " << name << ": not an option, or its value is missing or wrong\n";
      return std::nullopt;
    }
  }
  return arguments;
}

int run(const Arguments& arguments) {
  sim::Summary summary;
  const auto started = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < arguments.runs; ++i) {
    const auto seed = arguments.seed + i;
    const auto result = sim::simulate({.seed = seed,
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
      std::cout << fmt::format("seed {}: replay: ./dev sim --runs 1 --seed {} --trace{}{}\n", seed,
                               seed, arguments.no_faults ? " --no-faults" : "",
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
