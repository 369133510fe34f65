#include "engine/redaction/plaintext_search_job.h"

#include <algorithm>
#include <optional>
#include <set>

namespace verger::redaction {
namespace {

constexpr std::size_t kSearchedAtOnce = std::size_t{1} << 20U;
constexpr int kPiecesPerStep = 4;
/// Deeper than any database; a link that leads upwards ends.
constexpr int kMostDepth = 16;

}  // namespace

bool SearchedFile::clean() const {
  return problem.empty() && found.count == found.occurrences.size() &&
         std::ranges::none_of(found.occurrences,
                              [](const Occurrence& one) { return one.whole || one.event.empty(); });
}

struct PlaintextSearchJob::State {
  FileSystem& files;
  const PlaintextDigests& digests;
  SearchedPlaces places;
  std::atomic<bool> stop = false;
  bool listed = false;
  std::vector<SearchedFile> searched{};
  std::set<Path> known{};
  std::size_t next = 0;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::unique_ptr<File> file{};
  std::uint64_t at = 0;
  std::optional<PlaintextScanner> scanner{};
  Bytes buffer{};

  Result<void> list(const Path& directory, int depth);
  /// True at the file's end.
  bool read_piece();
  void end_file(std::string problem);
};

PlaintextSearchJob::PlaintextSearchJob(FileSystem& files, const PlaintextDigests& digests,
                                       std::vector<Path> directories)
    : PlaintextSearchJob(files, digests, SearchedPlaces{.directories = std::move(directories)}) {}
PlaintextSearchJob::PlaintextSearchJob(FileSystem& files, const PlaintextDigests& digests,
                                       SearchedPlaces places)
    : state_(new State{.files = files, .digests = digests, .places = std::move(places)}) {}
PlaintextSearchJob::~PlaintextSearchJob() = default;

std::uint64_t PlaintextSearchJob::bytes_done() const { return state_->done; }
std::uint64_t PlaintextSearchJob::bytes_total() const { return state_->total; }
const std::vector<SearchedFile>& PlaintextSearchJob::files() const { return state_->searched; }
std::vector<SearchedFile> PlaintextSearchJob::take_files() { return std::move(state_->searched); }
std::atomic<bool>& PlaintextSearchJob::stop_flag() { return state_->stop; }

Result<void> PlaintextSearchJob::State::list(const Path& directory, int depth) {
  if (depth > kMostDepth) {
    return {};
  }
  VERGER_TRY(const auto entries, files.list(directory));
  for (const auto& entry : entries) {
    const auto path = (directory / entry.name).lexically_normal();
    if (entry.is_directory) {
      VERGER_RETURN_IF_ERROR(list(path, depth + 1));
    } else if ((!places.wanted || places.wanted(path)) && known.insert(path).second) {
      searched.push_back({.path = path, .size = entry.size});
      total += entry.size;
    }
  }
  return {};
}

Result<StepOutcome> PlaintextSearchJob::step(Budget /*budget*/) {
  State& s = *state_;
  if (s.stop) {
    return Error{Errc::kCancelled, "the search was stopped"};
  }
  if (!s.listed) {
    for (const auto& directory : s.places.directories) {
      VERGER_RETURN_IF_ERROR(s.list(directory, 0));
    }
    for (const auto& file : s.places.files) {
      const auto size = s.files.file_size(file);
      s.searched.push_back({.path = file, .size = size ? *size : 0});
      s.total += s.searched.back().size;
    }
    std::ranges::sort(s.searched, {}, &SearchedFile::path);
    s.listed = true;
    return StepOutcome{};
  }
  for (int piece = 0; piece < kPiecesPerStep && s.next < s.searched.size(); ++piece) {
    if (s.read_piece()) {
      ++s.next;
    }
  }
  return StepOutcome{
      s.next == s.searched.size() ? StepOutcome::Kind::kDone : StepOutcome::Kind::kMore, {}};
}

bool PlaintextSearchJob::State::read_piece() {
  if (!scanner) {
    auto opened = files.open(searched[next].path, OpenMode::kRead);
    if (!opened) {
      searched[next].problem = opened.error().message;
      return true;
    }
    file = *std::move(opened);
    at = 0;
    scanner.emplace(digests);
  }
  buffer.resize(kSearchedAtOnce);
  const auto got = file->read_at(at, buffer);
  if (!got) {
    end_file(got.error().message);
    return true;
  }
  scanner->feed(ByteView(buffer).first(*got));
  at += *got;
  done += *got;
  if (*got < buffer.size()) {
    end_file("");
    return true;
  }
  return false;
}

void PlaintextSearchJob::State::end_file(std::string problem) {
  searched[next].size = at;
  searched[next].found = scanner->finish();
  searched[next].problem = std::move(problem);
  scanner.reset();
  file.reset();
}

}  // namespace verger::redaction
