#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/result.h"

namespace verger::settings {

enum class Source : std::uint8_t { kDefault, kFile, kEnvironment, kFlag };

/// How an option is shown and where it may come from.
struct Traits {
  std::string group{};
  /// Begins the name of the environment variable: "VERGER_NODE_" and "cluster-size" make
  /// VERGER_NODE_CLUSTER_SIZE.
  std::string prefix{"VERGER_"};
  /// Older names of the flag and the key, still taken.
  std::vector<std::string> aliases{};
  /// Never from a flag (it would be in the list of processes), and shown as asterisks.
  bool secret = false;
  /// Not empty: taken, without effect or under another name, with this warning.
  std::string deprecated{};
  /// Of the value, for example "ms"; empty: none.
  std::string unit{};
  /// Not empty: what is allowed.
  std::vector<std::string> choices{};
  /// For tests and demos: not in the help.
  bool hidden = false;
};

/// One option with the value that counts, for a person.
struct Effective {
  std::string name{};  ///< as in the YAML file: "ClusterSize"
  std::string flag{};  ///< "--cluster-size"
  std::string environment{};
  std::string description{};
  std::string group{};
  std::string value{};  ///< secrets as asterisks; else as it was given
  std::string type{};   ///< "string", "integer", "boolean"
  std::string unit{};
  std::string deprecated{};
  std::vector<std::string> choices{};
  Source source = Source::kDefault;
  std::string where{};  ///< the file, the variable or the flag that gave it
  bool hidden = false;  ///< for tests and demos
  bool secret = false;
};

/// Something the program does instead of running with its options.
struct ProgramCommand {
  std::string words{};  ///< "config check [--config FILE]"
  std::string description{};
};

/// Name to value.
std::map<std::string, std::string> environment_of_this_process();

/// The options of a program. Declare them with add(), which takes the variable's present value as
/// the default, then parse(). The variables outlive the object.
///
/// Flags: "--name value", "--name=value"; a flag of a boolean alone means true. "--config FILE",
/// "--help" and "--version" are always there. Keys of the file and flags compare without case, '-'
/// and '_'; a list in the file is joined by commas.
class Settings {
 public:
  Settings(std::string program, std::string summary);

  template <class T>
  void add(std::string name, T& into, std::string description, Traits traits = {}) {
    Option option;
    option.name = std::move(name);
    option.description = std::move(description);
    option.traits = std::move(traits);
    if constexpr (std::is_same_v<T, bool>) {
      option.type = "boolean";
      option.set = [&into](std::string_view text) { return parse_bool(text, into); };
    } else if constexpr (std::is_integral_v<T>) {
      option.type = "integer";
      option.set = [&into](std::string_view text) -> Result<void> {
        std::int64_t value = 0;
        VERGER_RETURN_IF_ERROR(parse_integer(text, value));
        if (!std::in_range<T>(value)) {
          return Error{Errc::kInvalidArgument, "the number is too large or too small"};
        }
        into = static_cast<T>(value);
        return {};
      };
    } else {
      static_assert(std::is_same_v<T, std::string>);
      option.type = "string";
      option.set = [&into](std::string_view text) -> Result<void> {
        into = std::string(text);
        return {};
      };
    }
    if constexpr (std::is_same_v<T, std::string>) {
      option.value = into;
    } else if constexpr (std::is_same_v<T, bool>) {
      option.value = into ? "True" : "False";
    } else {
      option.value = std::to_string(into);
    }
    declare(std::move(option));
  }

  /// Another program's file may be given: keys that are not known here are passed over.
  void pass_over_other_keys() { other_keys_ = true; }
  /// Lines below the help.
  void set_footer(std::string footer) { footer_ = std::move(footer); }

  /// For the help and the manual page; the program itself acts on them before it calls parse().
  void set_commands(std::vector<ProgramCommand> commands) { commands_ = std::move(commands); }

  enum class Action : std::uint8_t { kRun, kHelp, kVersion };
  /// Reads all sources. `environment`: name to value. Errors: kInvalidArgument: an unknown option
  /// (the message names the nearest), or a value that is not one; kNotFound, kIo: the file.
  Result<Action> parse(const std::vector<std::string>& arguments,
                       const std::map<std::string, std::string>& environment);
  /// The same from main()'s arguments and this process's environment.
  Result<Action> parse(int argc, const char* const* argv);

  /// After parse(): every option, in the order of declaration.
  [[nodiscard]] std::vector<Effective> effective() const;
  /// After parse(): what a person should know: deprecated options in use, variables that look like
  /// ours and are not known.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  /// Whether something else than the default was given.
  [[nodiscard]] bool given(std::string_view name) const;
  [[nodiscard]] std::string help() const;
  /// After parse(): a YAML file with all options that are neither hidden, deprecated nor secret.
  /// What was given is set; every default is there as a comment. `heading`: its first lines, as
  /// comments, without '#'.
  [[nodiscard]] std::string annotated_file(std::string_view heading) const;
  /// The manual page of a daemon (section 8) in roff, from the same text as help().
  [[nodiscard]] std::string manual_page() const;

 private:
  struct Option {
    std::string name;
    std::string description;
    std::string type;
    Traits traits;
    std::function<Result<void>(std::string_view)> set;
    std::string value;  ///< as text; first the default
    Source source = Source::kDefault;
    std::string where;
  };
  static Result<void> parse_bool(std::string_view text, bool& into);
  static Result<void> parse_integer(std::string_view text, std::int64_t& into);

  void declare(Option option);
  /// nullptr: there is none of that name.
  Option* find(std::string_view name);
  Error unknown(std::string_view what, std::string_view name, std::string_view prefix) const;
  Result<void> take(Option& option, std::string_view text, Source source, std::string where);
  Result<Action> read_flags(const std::vector<std::string>& arguments,
                            std::vector<std::pair<Option*, std::string>>& found);
  Result<void> read_environment(const std::map<std::string, std::string>& environment);
  Result<void> read_file(const std::string& path);

  std::string program_;
  std::string summary_;
  std::string footer_;
  std::string config_;
  std::vector<ProgramCommand> commands_;
  std::vector<Option> options_;
  std::vector<std::string> warnings_;
  bool other_keys_ = false;
};

}  // namespace verger::settings
