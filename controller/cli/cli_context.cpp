#include "controller/cli/cli_context.h"

#include <filesystem>
#include <ostream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "engine/base/file_system.h"
#include "engine/base/private_file.h"

namespace verger::cli {

void CliContext::print(const Table& table) const { table.print(out, width); }

Result<void> check_secret_file(const std::string& path) {
  std::error_code ignored;
  const Path file(path);
  if (path.empty()) {
    return {};
  }
  if (std::filesystem::exists(std::filesystem::symlink_status(file, ignored))) {
    return Error{Errc::kExists, path + ": it is there already; remove it, or name another file"};
  }
  if (file.has_parent_path() && !std::filesystem::is_directory(file.parent_path(), ignored)) {
    return Error{Errc::kNotFound, path + ": there is no such directory"};
  }
  return {};
}

int CliContext::show_secret(const nlohmann::json& answer, std::string_view about,
                            const std::string& file) const {
  if (!file.empty()) {
    const auto written =
        write_private_file(file, text_of(answer, "token") + '\n', IfThere::kRefuse);
    if (!written) {
      err << "verger: the token was made, but not written: " << written.error().message
          << "; revoke it and make another\n";
      return kFailed;
    }
    if (json) {
      auto shown = answer;
      shown.erase("token");
      out << shown.dump() << '\n';
    } else {
      err << about;
    }
    return kDone;
  }
  if (json) {
    out << answer.dump() << '\n';
    return kDone;
  }
  err << about;
  out << text_of(answer, "token") << '\n';
  return kDone;
}

int CliContext::fail(const CallFailure& failure) const {
  if (json && failure.problem.contains("detail")) {
    err << failure.problem.dump() << '\n';
  } else {
    err << "verger: " << failure.message << '\n';
  }
  return failure.exit_code;
}

}  // namespace verger::cli
