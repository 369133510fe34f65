#include "controller/cli/cert/cert_files.h"

#include <cstdlib>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "engine/base/bytes.h"
#include "engine/base/private_file.h"

namespace verger::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestFile = 1U << 20U;

}  // namespace

Result<std::string> text_of_file(const std::string& path) {
  VERGER_TRY(const auto bytes, read_file(posix_file_system(), path, kLargestFile));
  return std::string(as_text(bytes));
}

Result<std::string> PasswordSource::read() const {
  std::string out;
  if (!file.empty()) {
    VERGER_TRY(const auto text, text_of_file(file));
    out = text.substr(0, text.find_first_of("\r\n"));
    if (out.empty()) {
      return Error{Errc::kInvalidArgument, file + ": its first line, the password, is empty"};
    }
  } else if (!environment.empty()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
    const char* value = std::getenv(environment.c_str());
    if (value == nullptr || *value == '\0') {
      return Error{
          Errc::kInvalidArgument,
          fmt::format("the environment variable {} with the password is not set", environment)};
    }
    out = value;
  }
  return out;
}

void add_password_options(CLI::App& command, const std::string& name, const std::string& of,
                          PasswordSource& into) {
  auto* file = command.add_option("--" + name + "-file", into.file,
                                  "Password of " + of + ": the first line of this file");
  command
      .add_option("--" + name + "-env", into.environment,
                  "Password of " + of + ": the value of this environment variable")
      ->excludes(file);
}

std::string NewFiles::path_of(std::string_view name) const {
  return (fs::path(directory_) / name).string();
}

Result<void> NewFiles::check_free(const std::vector<std::string>& names) const {
  for (const auto& name : names) {
    const auto path = path_of(name);
    std::error_code ignored;
    if (!replace_ && fs::exists(fs::symlink_status(path, ignored))) {
      return Error{Errc::kExists,
                   path + " is there already and stays as it is; --force replaces it"};
    }
  }
  return {};
}

void NewFiles::add(std::string name, std::string content, bool secret) {
  files_.push_back({.name = std::move(name), .content = std::move(content), .secret = secret});
}

Result<std::vector<std::string>> NewFiles::write() {
  std::vector<std::string> names;
  names.reserve(files_.size());
  for (const auto& file : files_) {
    names.push_back(file.name);
  }
  VERGER_RETURN_IF_ERROR(check_free(names));
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) {
    return Error{Errc::kIo, fmt::format("{}: cannot be made: {}", directory_, error.message())};
  }
  std::vector<std::string> out;
  for (const auto& file : files_) {
    const auto path = path_of(file.name);
    VERGER_RETURN_IF_ERROR(
        write_private_file(path, file.content, replace_ ? IfThere::kReplace : IfThere::kRefuse));
    if (!file.secret) {
      fs::permissions(path,
                      fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read |
                          fs::perms::others_read,
                      error);
    }
    out.push_back(path);
  }
  return out;
}

}  // namespace verger::cli
