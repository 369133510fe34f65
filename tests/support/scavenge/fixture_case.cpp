#include "tests/support/scavenge/fixture_case.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "tests/support/fixtures.h"
#include "tests/support/temp_directory.h"

namespace verger::test {

FixtureCase::FixtureCase(const std::string& name) : name_(name) {
  std::ifstream file(fixtures_directory() / "scavenge" / name / "case.json");
  json_ = nlohmann::json::parse(file);
}

std::vector<std::string> scavenge_cases_where(
    const std::function<bool(const FixtureCase&)>& holds) {
  auto names = scavenge_cases();
  std::erase_if(names, [&](const auto& name) { return !holds(FixtureCase(name)); });
  if (names.empty()) {
    throw std::runtime_error("no case of tests/fixtures/scavenge is of the kind a test asks for");
  }
  return names;
}

std::string case_name(const testing::TestParamInfo<std::string>& info) {
  auto name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

bool FixtureCase::has(const std::string& archive) const {
  return std::filesystem::exists(fixtures_directory() / "scavenge" / name_ /
                                 (archive + ".tar.zst"));
}

std::vector<std::string> FixtureCase::afters() const {
  std::vector<std::string> names;
  for (const auto* archive : {"after", "after-n1", "after-n2", "after-n3"}) {
    if (has(archive)) {
      names.emplace_back(archive);
    }
  }
  return names;
}

std::unique_ptr<MemoryFileSystem> FixtureCase::unpack(const std::string& archive) {
  auto& original = unpacked_[archive];
  if (original == nullptr) {
    const TempDirectory directory;
    unpack_fixture("scavenge/" + name_ + "/" + archive + ".tar.zst", directory.path());
    original = std::make_unique<MemoryFileSystem>();
    const auto imported = original->import_tree(posix_file_system(), directory.path(), "/db");
    if (!imported) {
      throw std::runtime_error(imported.error().message);
    }
  }
  return original->clone();
}

std::optional<streams::ScavengePoint> FixtureCase::point() const {
  const auto point = json_.find("scavengePoint");
  if (point == json_.end() || !point->is_object() || !point->contains("pos")) {
    return std::nullopt;
  }
  return streams::ScavengePoint{LogPosition(point->at("pos").get<std::int64_t>()),
                                EventNumber(point->at("eventNumber").get<std::int64_t>()),
                                Ticks(point->at("now").get<std::int64_t>()),
                                point->at("threshold").get<std::int32_t>()};
}

bool FixtureCase::point_is_newer() const {
  const auto chosen = point();
  return chosen && chosen->position.value() >= json_.at("before").at("writer").get<std::int64_t>();
}

ScavengeRun FixtureCase::run() const {
  ScavengeRun run;
  const auto options = json_.at("server").at("options").get<std::vector<std::string>>();
  for (std::size_t n = 0; n < options.size(); ++n) {
    if (options[n] == "--chunk-size") {
      run.chunk_size = std::stoi(options[n + 1]);
    } else if (options[n] == "--max-mem-table-size") {
      run.max_mem_table_size = std::stoull(options[n + 1]);
    } else if (options[n] == "--disable-scavenge-merging") {
      run.options.merge_chunks = false;
    } else if (options[n] == "--unsafe-ignore-hard-delete") {
      run.options.unsafe_ignore_hard_delete = true;
    }
  }
  if (const auto requests = json_.find("requests");
      requests != json_.end() && !requests->empty() && requests->back().contains("threads")) {
    run.options.threads = requests->back().at("threads").get<int>();
  }
  run.point = point();
  return run;
}

Result<void> replay_to_point(FileSystem& files, FileSystem& after, const ScavengeRun& run,
                             const streams::ScavengePoint& point) {
  VERGER_TRY(const auto target, open_database(files, "/db", run, log::Access::kWrite));
  VERGER_TRY(const auto source, open_database(after, "/db", run, log::Access::kReadOnly));
  auto& log = target->transaction_log();
  log::LogCursor cursor(source->transaction_log(), log.append_position(),
                        point.position + std::int64_t{1});
  for (;;) {
    VERGER_TRY(const auto record, cursor.next());
    if (!record) {
      break;
    }
    if (log.chunk_of(record->position()) != log.chunk_of(log.append_position())) {
      VERGER_RETURN_IF_ERROR(log.complete_replicated_chunk());
    }
    VERGER_RETURN_IF_ERROR(target->append_replicated(record->framed));
  }
  VERGER_RETURN_IF_ERROR(log.complete_replicated_chunk());
  VERGER_RETURN_IF_ERROR(target->commit_up_to(log.end()));
  return log.flush_checkpoints();
}

}  // namespace verger::test
