#include "tests/bench/backup/slow_restores.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "tests/bench/workload.h"
#include "tests/support/processes/process.h"
#include "tests/support/processes/s3rver.h"
#include "tests/support/processes/slow_line.h"

namespace verger::bench {
namespace {

using nlohmann::json;

constexpr std::uint64_t kRestoredStreams = 5'000;
constexpr std::size_t kEventBytes = 16;
constexpr auto kLimit = std::chrono::hours(2);
/// What measuring and the estimate may cost.
constexpr double kMargin = 1.1;

class Restores {
 public:
  Restores(const SlowRestores& wanted, std::filesystem::path directory)
      : wanted_(wanted),
        directory_(std::move(directory)),
        server_(VERGER_OBJECT_STORE_TEST, directory_) {}

  void prepare() {
    expect(server_.install());
    expect(server_.start());
    const auto made =
        generate({.name = "restores",
                  .streams = kRestoredStreams,
                  .events_each = std::max<std::uint64_t>(wanted_.events / kRestoredStreams, 1),
                  .max_count = 0,
                  .limited_percent = 0,
                  .data_size = kEventBytes,
                  .chunk_size = 64 << 20},
                 directory_ / "db");
    expect(made ? std::string() : made.error().message);
    std::uint64_t log = 0;
    std::uint64_t tables = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(directory_ / "db")) {
      const bool of_log = file.path().filename().string().starts_with("chunk-");
      (of_log ? log : tables) += file.is_regular_file() ? file.file_size() : 0;
    }
    std::ofstream(directory_ / "keys")
        << "aws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n";
    std::filesystem::permissions(directory_ / "keys", std::filesystem::perms::owner_read |
                                                          std::filesystem::perms::owner_write);
    verger_db({"backup", "create", (directory_ / "db").string(), "--to", repository(server_.port()),
               "--node", "n1"});
    std::cout << fmt::format("{} events: chunk files {:.0f} MiB, index {:.0f} MiB; {}\n",
                             wanted_.events, mib(log), mib(tables),
                             wanted_.compressed ? "zstd" : "as it is")
              << std::flush;
  }

  /// Whether what the restore chose was not clearly the slower one.
  bool measure(std::uint64_t rate) {
    const auto never = restore("never", rate);
    const auto always = restore("always", rate);
    const auto chosen = restore("auto", rate);
    const auto better = std::min(never, always);
    std::cout << fmt::format(
                     "{:>7} KiB/s: copied {:.1f} s, made from the log {:.1f} s, chosen {:.1f} s: "
                     "x {:.3f} of the better one\n",
                     rate, never, always, chosen, chosen / better)
              << std::flush;
    return chosen <= kMargin * better;
  }

 private:
  static double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1U << 20U); }
  static void expect(const std::string& problem) {
    if (!problem.empty()) {
      throw std::runtime_error(problem);
    }
  }
  static json verger_db(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {test::program("verger-db"), "-o", "json"});
    const auto done = test::run(arguments, {}, kLimit);
    expect(done.status == 0 ? std::string() : done.status.story);
    return json::parse(done.out, nullptr, false);
  }

  /// The repository's file, with the server at this port.
  [[nodiscard]] std::string repository(std::uint16_t port) const {
    const auto file = directory_ / "orders.json";
    std::ofstream(file) << json{{"location", "s3://backups/orders"},
                                {"endpoint", fmt::format("http://127.0.0.1:{}", port)},
                                {"credentialsFile", (directory_ / "keys").string()},
                                {"compression", wanted_.compressed ? "zstd" : "none"}}
                               .dump();
    return file.string();
  }

  double restore(const std::string& index, std::uint64_t rate) {
    const test::SlowLine line(server_.port(), rate << 10U);
    const auto target = directory_ / "restored";
    const auto begun = std::chrono::steady_clock::now();
    const auto printed = verger_db(
        {"restore", target.string(), "--from", repository(line.port()), "--rebuild-index", index});
    const auto took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    std::cout << fmt::format("{:>7} KiB/s, {:<6} {:>7.1f} s, {:>6.1f} MiB received  {}\n", rate,
                             index, took, mib(line.received()),
                             printed.is_object() ? printed.value("indexChoice", std::string())
                                                 : std::string())
              << std::flush;
    std::filesystem::remove_all(target);
    return took;
  }

  const SlowRestores& wanted_;
  std::filesystem::path directory_;
  test::S3rver server_;
};

}  // namespace

int measure_slow_restores(const SlowRestores& wanted, const std::filesystem::path& directory) {
  Restores restores(wanted, directory);
  restores.prepare();
  bool well = true;
  for (const auto rate : wanted.rates) {
    well = restores.measure(rate) && well;
  }
  return well ? 0 : 1;
}

}  // namespace verger::bench
