#include "controller/cli/cert/cert_batch.h"

#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <yaml-cpp/yaml.h>

namespace verger::cli {
namespace {

using certificates::CertificateKind;

Error at_line(const YAML::Node& node, std::string_view what) {
  return {Errc::kInvalidArgument, fmt::format("line {}: {}", node.Mark().line + 1, what)};
}

/// "a, b" or a list.
std::vector<std::string> words_of(const YAML::Node& node) {
  std::vector<std::string> out;
  if (node.IsSequence()) {
    for (const auto& each : node) {
      out.push_back(each.as<std::string>());
    }
    return out;
  }
  std::istringstream parts(node.as<std::string>());
  for (std::string word; std::getline(parts, word, ',');) {
    const auto begin = word.find_first_not_of(' ');
    if (begin != std::string::npos) {
      out.push_back(word.substr(begin, word.find_last_not_of(' ') - begin + 1));
    }
  }
  return out;
}

using Setter = std::function<void(NewCertificateOptions&, const YAML::Node&)>;

Setter text_into(std::string NewCertificateOptions::* member) {
  return [member](NewCertificateOptions& to, const YAML::Node& node) {
    to.*member = node.as<std::string>();
  };
}
Setter password_into(PasswordSource NewCertificateOptions::* source,
                     std::string PasswordSource::* member) {
  return [source, member](NewCertificateOptions& to, const YAML::Node& node) {
    to.*source.*member = node.as<std::string>();
  };
}
Setter words_into(std::vector<std::string> NewCertificateOptions::* member) {
  return
      [member](NewCertificateOptions& to, const YAML::Node& node) { to.*member = words_of(node); };
}

/// The members of an entry. A password itself has none: the file would be one more secret.
std::map<std::string, Setter> members_of(CertificateKind kind) {
  using Options = NewCertificateOptions;
  std::map<std::string, Setter> out{
      {"out", text_into(&Options::out)},
      {"name", text_into(&Options::name)},
      {"ca-certificate", text_into(&Options::ca_certificate)},
      {"ca-key", text_into(&Options::ca_key)},
      {"key-type", text_into(&Options::key_type)},
      {"ca-key-password-file", password_into(&Options::ca_key_password, &PasswordSource::file)},
      {"ca-key-password-env",
       password_into(&Options::ca_key_password, &PasswordSource::environment)},
      {"key-password-file", password_into(&Options::key_password, &PasswordSource::file)},
      {"key-password-env", password_into(&Options::key_password, &PasswordSource::environment)},
      {"pkcs12-password-file", password_into(&Options::pkcs12_password, &PasswordSource::file)},
      {"pkcs12-password-env",
       password_into(&Options::pkcs12_password, &PasswordSource::environment)},
      {"days", [](Options& to, const YAML::Node& node) { to.days = node.as<int>(); }},
      {"force", [](Options& to, const YAML::Node& node) { to.force = node.as<bool>(); }},
  };
  if (kind == CertificateKind::kUser) {
    out.emplace("username", text_into(&Options::common_name));
  } else {
    out.emplace("common-name", text_into(&Options::common_name));
  }
  if (kind == CertificateKind::kNode) {
    out.emplace("ip-addresses", words_into(&Options::ip_addresses));
    out.emplace("dns-names", words_into(&Options::dns_names));
  }
  if (kind == CertificateKind::kRoot) {
    out.emplace("cert-path", text_into(&Options::ca_certificate));
    out.emplace("key-path", text_into(&Options::ca_key));
  }
  return out;
}

Result<NewCertificateOptions> read_entry(const YAML::Node& entry, CertificateKind kind) {
  NewCertificateOptions out{.kind = kind};
  const auto members = members_of(kind);
  if (!entry.IsMap()) {
    return at_line(entry, "an entry has members, such as out");
  }
  for (const auto& member : entry) {
    const auto name = member.first.as<std::string>();
    const auto found = members.find(name);
    if (found == members.end()) {
      std::string known;
      for (const auto& [each, setter] : members) {
        known += (known.empty() ? "" : ", ") + each;
      }
      return at_line(member.first, fmt::format("{} is unknown; it takes {}", name, known));
    }
    try {
      found->second(out, member.second);
    } catch (const YAML::Exception&) {
      return at_line(member.second, fmt::format("{} has a value that cannot be read", name));
    }
  }
  if (out.out.empty()) {
    return at_line(entry, "out is missing: the directory of the new files");
  }
  auto complete = completed(std::move(out));
  if (!complete) {
    return at_line(entry, complete.error().message);
  }
  return complete;
}

Result<std::vector<NewCertificateOptions>> read_entries(const YAML::Node& root) {
  static const std::map<std::string, CertificateKind> kLists{
      {"ca-certs", CertificateKind::kRoot},
      {"node-certs", CertificateKind::kNode},
      {"user-certs", CertificateKind::kUser}};
  std::vector<NewCertificateOptions> out;
  if (!root.IsMap()) {
    return at_line(root, "it takes ca-certs, node-certs and user-certs");
  }
  for (const auto& member : root) {
    if (!kLists.contains(member.first.as<std::string>())) {
      return at_line(member.first, fmt::format("{} is unknown; it takes ca-certs, node-certs and "
                                               "user-certs",
                                               member.first.as<std::string>()));
    }
  }
  for (const auto& [name, kind] : kLists) {  // in the order of the alphabet, authorities first
    const auto list = root[name];
    if (list.IsDefined() && !list.IsNull() && !list.IsSequence()) {
      return at_line(list, name + " is a list");
    }
    for (const auto& entry : list) {
      VERGER_TRY(auto options, read_entry(entry, kind));
      out.push_back(std::move(options));
    }
  }
  if (out.empty()) {
    return at_line(root, "there is nothing to make in it");
  }
  return out;
}

/// Before anything is made: no file is there, and none is written twice.
Result<void> check_all_free(const std::vector<NewCertificateOptions>& all) {
  std::set<std::string> paths;
  for (const auto& options : all) {
    const NewFiles files(options.out, options.force);
    const auto names = files_of(options);
    VERGER_RETURN_IF_ERROR(files.check_free(names));
    for (const auto& name : names) {
      const auto path = std::filesystem::path(files.path_of(name)).lexically_normal().string();
      if (!paths.insert(path).second) {
        return Error{Errc::kInvalidArgument,
                     path + " would be written twice; give each entry its own out or name"};
      }
    }
  }
  return {};
}

}  // namespace

Result<std::vector<NewCertificateOptions>> parse_batch(const std::string& yaml) {
  try {
    const auto root = YAML::Load(yaml);
    const auto below = root.IsMap() ? root["certificates"] : YAML::Node();
    return read_entries(below.IsDefined() && !below.IsNull() ? below : root);
  } catch (const YAML::Exception& error) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("line {}: no YAML: {}", error.mark.line + 1, error.msg)};
  }
}

BatchResult make_batch(const std::string& file, bool force, Ticks now) {
  BatchResult out;
  const auto run = [&]() -> Result<void> {
    VERGER_TRY(const auto text, text_of_file(file));
    auto entries = parse_batch(text);
    if (!entries) {
      return entries.error().within(file);
    }
    for (auto& options : *entries) {
      options.force = options.force || force;
    }
    VERGER_RETURN_IF_ERROR(check_all_free(*entries));
    for (const auto& options : *entries) {
      auto made = make_certificate(options, now);
      if (!made) {
        return made.error().within(options.out);
      }
      out.made.push_back(*std::move(made));
    }
    return {};
  };
  out.outcome = run();
  return out;
}

}  // namespace verger::cli
