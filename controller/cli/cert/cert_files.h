#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace CLI {
class App;
}  // namespace CLI

/// The files of `verger cert`: what it reads and what it leaves.
namespace verger::cli {

/// Of a file, at most 1 MiB; "-" is none. Errors: kNotFound, kIo.
Result<std::string> text_of_file(const std::string& path);

/// Where a password comes from: never from the command line, which others can see.
struct PasswordSource {
  std::string file{};         ///< its first line
  std::string environment{};  ///< the name of a variable
  [[nodiscard]] bool given() const { return !file.empty() || !environment.empty(); }
  /// Empty where no source is given. Errors: kInvalidArgument: an empty one; those of text_of_file.
  [[nodiscard]] Result<std::string> read() const;
};
/// --NAME-file and --NAME-env.
void add_password_options(CLI::App& command, const std::string& name, const std::string& of,
                          PasswordSource& into);

/// New files of one directory, which is made where it is missing. Keys have mode 0600, others 0644.
class NewFiles {
 public:
  NewFiles(std::string directory, bool replace)
      : directory_(std::move(directory)), replace_(replace) {}
  [[nodiscard]] std::string path_of(std::string_view name) const;
  /// Error: kExists: one of these files is there, and they are not to be replaced.
  [[nodiscard]] Result<void> check_free(const std::vector<std::string>& names) const;
  void add(std::string name, std::string content, bool secret);
  /// All or, where one is there already, none. Their paths. Errors: kExists, kIo, kNoSpace.
  Result<std::vector<std::string>> write();

 private:
  struct File {
    std::string name;
    std::string content;
    bool secret;
  };
  std::string directory_;
  bool replace_;
  std::vector<File> files_;
};

}  // namespace verger::cli
