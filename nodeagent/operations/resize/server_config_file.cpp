#include "nodeagent/operations/resize/server_config_file.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/directories.h"
#include "engine/base/failpoint.h"
#include "nodeagent/operations/certificates/private_copy.h"

namespace verger::agent {
namespace {

constexpr std::uint64_t kLargestConfig = 1U << 20U;

Error not_known() {
  return {Errc::kUnsupported,
          "the agent does not know its server's configuration file (--server-config)"};
}

/// Why the size is not that of the file; empty: it is, as far as the process shows.
std::string why_not_of_file(const external::StartOptions& started, const Path& file) {
  if (const auto given = external::given_at_start(started, "cluster-size"); !given.empty()) {
    return fmt::format("the server was started with {}, which counts more than its file", given);
  }
  const auto used = external::config_file_given(started);
  std::error_code other;
  if (!used.empty() && used != file && !std::filesystem::equivalent(used, file, other)) {
    return fmt::format("the server was started with the file {}, not with {}", used.string(),
                       file.string());
  }
  return {};
}

std::string why_not_of_report(const api::ServerConfig& seen, const std::string& source) {
  if (seen.cluster_size == 0) {
    return fmt::format("{}: ClusterSize is not in it", seen.path);
  }
  if (seen.reported != 0 && seen.reported != seen.cluster_size) {
    return fmt::format("{}: ClusterSize is {}, but the server reports {}{}", seen.path,
                       seen.cluster_size, seen.reported,
                       source.empty() ? std::string() : " (" + source + ")");
  }
  return {};
}

}  // namespace

Result<std::string> ServerConfigFile::text() const {
  if (!access_) {
    return not_known();
  }
  VERGER_TRY(const auto bytes, read_file(files_, access_->file, kLargestConfig));
  return std::string(as_text(bytes));
}

Result<std::string> ServerConfigFile::kept_text(const std::string& change, bool after) const {
  VERGER_TRY(const auto bytes, read_file(files_, kept(change, after), kLargestConfig));
  return std::string(as_text(bytes));
}

Result<std::int32_t> ServerConfigFile::size() const {
  VERGER_TRY(const auto now, text());
  VERGER_TRY(const auto lines, external::read_cluster_lines(now));
  return lines.size;
}

net::awaitable<api::ServerConfig> ServerConfigFile::look(
    std::shared_ptr<const ServerConfigFile> self, client::NodeClient node) {
  api::ServerConfig out;
  if (!self->access_) {
    out.problem = not_known().message;
    co_return out;
  }
  out.path = self->access_->file.string();
  const auto problem = [&out](std::string text) {
    if (out.problem.empty()) {
      out.problem = std::move(text);
    }
  };
  const auto text = self->text();
  const auto lines =
      text ? external::read_cluster_lines(*text) : Result<external::ClusterLines>(text.error());
  if (!lines) {
    problem(text ? fmt::format("{}: {}", out.path, lines.error().message) : lines.error().message);
  } else {
    out.cluster_size = lines->size;
    out.seeds = lines->seeds;
  }
  const auto target = self->access_->access.target_of(self->access_->file);
  if (!target) {
    problem(target.error().message);
  } else if (auto why = self->access_->access.not_writable(target->parent_path()); !why.empty()) {
    problem(std::move(why));
  }
  const auto started = co_await self->access_->started_with();
  if (!started) {
    problem(started.error().message);
  } else if (*started) {
    problem(why_not_of_file(**started, self->access_->file));
    out.seeds_from = external::given_at_start(**started, "gossip-seed");
  }
  const auto settings = client::to_result(co_await node.settings());
  if (settings) {
    out.reported = settings->cluster_size;
  }
  if (lines) {
    problem(why_not_of_report(out, settings ? settings->cluster_size_source : std::string()));
  }
  co_return out;
}

Result<void> ServerConfigFile::keep(const api::ServerSize& change) {
  VERGER_TRY(const auto now, text());
  VERGER_TRY(const auto known, side(change.change));
  if (known == Side::kForeign) {
    return Error{Errc::kConflict,
                 fmt::format("{}: was changed by someone else meanwhile", access_->file.string())};
  }
  if (known != Side::kUnknown) {
    return {};
  }
  VERGER_TRY(const auto next,
             external::change_cluster_lines(now, {.from = change.from,
                                                  .to = change.to,
                                                  .add_seeds = change.add_seeds,
                                                  .remove_seeds = change.remove_seeds}));
  VERGER_RETURN_IF_ERROR(make_directories_durably(files_, directory_));
  // Former changes have ended: a controller is at one at a time.
  VERGER_TRY(const auto entries, files_.list(directory_));
  for (const auto& entry : entries) {
    VERGER_RETURN_IF_ERROR(remove_if_there(files_, directory_ / entry.name));
  }
  VERGER_RETURN_IF_ERROR(store(kept(change.change, true), next));
  VERGER_FAILPOINT("agent.server-size.kept-one");
  return store(kept(change.change, false), now);  // with this one the change is known
}

Result<void> ServerConfigFile::store(const Path& path, const std::string& content) {
  // Passwords may be in it.
  const Path part = path.string() + ".part";
  VERGER_RETURN_IF_ERROR(write_copy(files_, access_->access, part, content, std::nullopt));
  VERGER_RETURN_IF_ERROR(files_.rename(part, path));
  return files_.sync_directory(directory_);
}

Result<ServerConfigFile::Side> ServerConfigFile::side(const std::string& change) const {
  const auto before = kept_text(change, false);
  if (!before) {
    return before.error().code == Errc::kNotFound ? Result<Side>(Side::kUnknown) : before.error();
  }
  VERGER_TRY(const auto after, kept_text(change, true));
  VERGER_TRY(const auto now, text());
  return now == *before ? Side::kBefore : now == after ? Side::kAfter : Side::kForeign;
}

Result<void> ServerConfigFile::put(const std::string& change, bool after) {
  VERGER_TRY(const auto now, side(change));
  if (now == (after ? Side::kAfter : Side::kBefore)) {
    return {};
  }
  if (now == Side::kUnknown || now == Side::kForeign) {
    return Error{Errc::kConflict,
                 fmt::format("{}: was changed by someone else meanwhile, and is left as it is",
                             access_->file.string())};
  }
  VERGER_TRY(const auto content, kept_text(change, after));
  VERGER_TRY(const auto target, access_->access.target_of(access_->file));
  VERGER_TRY(const auto attributes, access_->access.attributes_of(target));
  const auto next =
      target.parent_path() / fmt::format(".{}.verger-next", target.filename().string());
  VERGER_RETURN_IF_ERROR(write_copy(files_, access_->access, next, content, attributes));
  VERGER_FAILPOINT("agent.server-size.before-rename");
  VERGER_RETURN_IF_ERROR(files_.rename(next, target));
  VERGER_FAILPOINT("agent.server-size.after-rename");
  return files_.sync_directory(target.parent_path());
}

}  // namespace verger::agent
