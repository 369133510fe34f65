#include <algorithm>
#include <array>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/cert/cert_batch.h"
#include "controller/cli/cert/cert_create.h"
#include "controller/cli/cert/cert_inspect.h"
#include "controller/cli/cert/cert_lint.h"
#include "controller/cli/cert/cert_rollout.h"
#include "controller/cli/cert/cert_status.h"
#include "controller/cli/commands.h"
#include "controller/cli/times.h"
#include "engine/base/clock.h"

namespace verger::cli {
namespace {

using certificates::CertificateKind;
using nlohmann::json;

int cert_failed(const LocalContext& context, const Error& error) {
  context.err << "verger: " << error.message << '\n';
  return error.code == Errc::kInvalidArgument ? kUsage
         : error.code == Errc::kExists        ? kRefused
                                              : kFailed;
}

json made_json(const MadeCertificate& made) {
  json out{{"common_name", made.common_name}, {"files", made.files}};
  if (made.certificate) {
    out["serial"] = made.certificate->serial;
    out["not_before"] = format_ticks(made.certificate->not_before);
    out["not_after"] = format_ticks(made.certificate->not_after);
    out["ends_with_authority"] = made.certificate->ends_with_authority;
  }
  return out;
}

void print_made(const LocalContext& context, const MadeCertificate& made) {
  if (context.json) {
    context.out << made_json(made).dump() << '\n';
    return;
  }
  for (const auto& file : made.files) {
    context.out << "wrote " << file << '\n';
  }
  if (!made.certificate) {
    context.out << fmt::format(
        "CN={}: have the request signed, then check the answer with `verger cert lint`\n",
        made.common_name);
    return;
  }
  context.out << fmt::format("CN={}, serial {}, valid until {}\n", made.common_name,
                             made.certificate->serial, format_ticks(made.certificate->not_after));
  if (made.certificate->ends_with_authority) {
    context.out << "note: it ends with its CA, earlier than --days says\n";
  }
}

int run_create(const LocalContext& context, const NewCertificateOptions& options) {
  auto complete = completed(options);
  if (!complete) {
    return cert_failed(context, complete.error());
  }
  const auto made = make_certificate(*complete, system_clock().now());
  if (!made) {
    return cert_failed(context, made.error());
  }
  print_made(context, *made);
  return kDone;
}

int run_renew(const LocalContext& context, const RenewOptions& options) {
  const auto made = renew_certificate(options, system_clock().now());
  if (!made) {
    return cert_failed(context, made.error());
  }
  print_made(context, *made);
  return kDone;
}

int run_batch(const LocalContext& context, const std::string& file, bool force) {
  const auto result = make_batch(file, force, system_clock().now());
  for (const auto& made : result.made) {
    print_made(context, made);
  }
  if (!result.outcome) {
    const int status = cert_failed(context, result.outcome.error());
    if (!result.made.empty()) {
      context.err << fmt::format(
          "verger: the {} before it are made and stay; correct the rest, then take the made "
          "entries out of the file\n",
          result.made.size());
    }
    return status;
  }
  return kDone;
}

using Options = std::shared_ptr<NewCertificateOptions>;

void add_output_options(CLI::App& command, NewCertificateOptions& to, const std::string& directory,
                        const std::string& name) {
  command.add_option("--days", to.days, "How long it is valid; never longer than its CA");
  command.add_option("--out", to.out, "Directory of the new files (" + directory + ")");
  command.add_option("--name", to.name, "Name of the new files (" + name + ")");
  command.add_flag("--force", to.force, "Replace files that are there already");
  command
      .add_option("--not-before-skew", to.skew_minutes,
                  "Minutes before now from which it is valid, since clocks differ")
      ->capture_default_str()
      ->check(CLI::Range(0, 1440));
}

void add_key_options(CLI::App& command, NewCertificateOptions& to) {
  command
      .add_option("--key-type", to.key_type,
                  "rsa-2048 (default), rsa-3072, rsa-4096, ec-p256 or ec-p384; servers load "
                  "RSA alone")
      ->check(CLI::IsMember({"rsa-2048", "rsa-3072", "rsa-4096", "ec-p256", "ec-p384"}));
  add_password_options(command, "key-password", "the new key, which is then encrypted",
                       to.key_password);
}

void add_ca_options(CLI::App& command, NewCertificateOptions& to, const std::string& what) {
  command.add_option("--ca-certificate", to.ca_certificate, "Certificate of the CA that " + what);
  command.add_option("--ca-key", to.ca_key, "Key of that CA");
  add_password_options(command, "ca-key-password", "an encrypted CA key", to.ca_key_password);
}

void add_csr_options(CLI::App& command, NewCertificateOptions& to) {
  auto* only = command.add_flag("--csr-only", to.csr_only,
                                "Make a key and a request (CSR) for another CA to sign");
  command
      .add_option("--csr", to.csr,
                  "Sign the key of this request (CSR) instead of making a key; of its other "
                  "content only the names are used, and only where no option gives names")
      ->excludes(only);
}

void add_name_options(CLI::App& command, NewCertificateOptions& to) {
  command
      .add_option("--ip-addresses", to.ip_addresses,
                  "Addresses by which others reach the node, with commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--dns-names", to.dns_names,
                  "DNS names by which others reach the node, with commas")
      ->delimiter(',')
      ->allow_extra_args(false);
}

void add_pkcs12_options(CLI::App& command, NewCertificateOptions& to) {
  add_password_options(command, "pkcs12-password",
                       "a PKCS#12 file with key and chain, which is written too",
                       to.pkcs12_password);
}

void add_create_ca(CLI::App& cert, LocalCommand& chosen) {
  const Options options = std::make_shared<NewCertificateOptions>();
  options->kind = CertificateKind::kRoot;
  auto* command = cert.add_subcommand(
      "create-ca", "A root CA; with --ca-certificate and --ca-key an intermediate CA");
  command->footer("Example: verger cert create-ca --out ./ca");
  add_output_options(*command, *options, "./ca", "ca");
  add_key_options(*command, *options);
  command->add_option("--common-name", options->common_name,
                      "Name of the CA; each has its own by default");
  add_ca_options(*command, *options, "signs an intermediate");
  add_csr_options(*command, *options);
  command->callback([options, &chosen] {
    // A request is signed by another authority: the new one is none of its own.
    if (options->csr_only) {
      options->kind = CertificateKind::kIntermediate;
    }
    chosen = [options](const LocalContext& context) { return run_create(context, *options); };
  });
}

void add_create_node(CLI::App& cert, LocalCommand& chosen) {
  const Options options = std::make_shared<NewCertificateOptions>();
  auto* command = cert.add_subcommand("create-node", "A node's certificate: server and client");
  command->footer(
      "Example: verger cert create-node --ca-certificate ./ca/ca.crt --ca-key ./ca/ca.key "
      "--ip-addresses 10.0.0.1 --dns-names n1.example.com --out ./node1");
  add_output_options(*command, *options, "./node1, the first that is not there", "node");
  add_key_options(*command, *options);
  add_ca_options(*command, *options, "signs it");
  add_csr_options(*command, *options);
  command->add_option("--common-name", options->common_name,
                      "The same on all nodes of a cluster (eventstoredb-node)");
  add_name_options(*command, *options);
  add_pkcs12_options(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options](const LocalContext& context) { return run_create(context, *options); };
  });
}

void add_create_user(CLI::App& cert, LocalCommand& chosen) {
  const Options options = std::make_shared<NewCertificateOptions>();
  options->kind = CertificateKind::kUser;
  auto* command = cert.add_subcommand("create-user", "A user's certificate: client");
  command->footer(
      "Example: verger cert create-user --username ouro --ca-certificate ./ca/ca.crt --ca-key "
      "./ca/ca.key");
  add_output_options(*command, *options, "./user-NAME", "user-NAME");
  add_key_options(*command, *options);
  add_ca_options(*command, *options, "signs it");
  add_csr_options(*command, *options);
  command->add_option("--username", options->common_name, "Whose it is")->required();
  add_pkcs12_options(*command, *options);
  command->callback([options, &chosen] {
    chosen = [options](const LocalContext& context) { return run_create(context, *options); };
  });
}

void add_renew(CLI::App& cert, LocalCommand& chosen) {
  const auto options = std::make_shared<RenewOptions>();
  auto* command = cert.add_subcommand(
      "renew", "A certificate anew: the same names and lifetime, by default a new key");
  command->footer(
      "Example: verger cert renew node1/node.crt --ca-certificate ca/ca.crt --ca-key ca/ca.key");
  command->add_option("FILE", options->certificate, "The certificate")->required();
  add_output_options(*command, options->made, "renewed, beside the certificate",
                     "that of the certificate");
  add_key_options(*command, options->made);
  add_ca_options(*command, options->made, "signs it");
  command->add_flag("--reuse-key", options->reuse_key, "Keep the key");
  command->add_option("--key", options->made.key,
                      "With --reuse-key: the key (that beside the certificate)");
  add_name_options(*command, options->made);
  add_pkcs12_options(*command, options->made);
  command->callback([options, &chosen] {
    chosen = [options](const LocalContext& context) { return run_renew(context, *options); };
  });
}

void add_create_batch(CLI::App& cert, LocalCommand& chosen) {
  struct Batch {
    std::string file;
    std::string config_file;
    bool force = false;
  };
  const auto options = std::make_shared<Batch>();
  for (const auto* name : {"create-batch", "create-certs"}) {
    auto* command = cert.add_subcommand(name, "All certificates of a YAML file");
    if (std::string_view(name) == "create-certs") {
      command->group("");  // as the known generation tool calls it
    }
    command->footer("Example: verger cert create-batch certs.yml");
    auto* file = command->add_option("FILE", options->file,
                                     "ca-certs, node-certs and user-certs, each a list");
    command->add_option("--config-file", options->file, "The same as FILE")->excludes(file);
    command->add_flag("--force", options->force, "Replace files that are there already");
    command->callback([options, &chosen] {
      if (options->file.empty()) {
        throw CLI::RequiredError("FILE");
      }
      chosen = [options](const LocalContext& context) {
        return run_batch(context, options->file, options->force);
      };
    });
  }
}

}  // namespace

void add_cert_commands(CLI::App& app, LocalCommand& chosen_local, Command& chosen) {
  auto* cert = app.add_subcommand(
      "cert",
      "Certificates: make, show and check files on this machine, without vergerd; see those of "
      "clusters");
  cert->footer(
      "Keys are written with mode 0600; no file is replaced without --force. For an encrypted key "
      "give --key-password-file,\nor with -env instead of -file the name of an environment "
      "variable; the same for --ca-key and PKCS#12 files.\n"
      "Exit codes: 0 done, or no errors; 1 failed; 2 refused: a file is there already, or lint "
      "found "
      "an error; 64 wrong usage,\nor a file's content is wrong.\n"
      "Example:\n  verger cert create-ca --out ./ca\n"
      "  verger cert create-node --ca-certificate ./ca/ca.crt --ca-key ./ca/ca.key --ip-addresses "
      "10.0.0.1 --out ./node1\n"
      "  verger cert lint . --node node1=https://10.0.0.1:2113");
  cert->require_subcommand(1);
  add_create_ca(*cert, chosen_local);
  add_create_node(*cert, chosen_local);
  add_create_user(*cert, chosen_local);
  add_create_batch(*cert, chosen_local);
  add_renew(*cert, chosen_local);
  add_cert_inspect(*cert, chosen_local);
  add_cert_lint(*cert, chosen_local);
  add_cert_status(*cert, chosen);
  add_cert_rollout(*cert, chosen);
}

std::vector<std::string> with_two_hyphens(std::vector<std::string> arguments) {
  static constexpr std::array<std::string_view, 11> kNames{
      "-days",         "-out",       "-name",        "-ca-certificate", "-ca-key",     "-force",
      "-ip-addresses", "-dns-names", "-common-name", "-username",       "-config-file"};
  const auto noun = std::ranges::find(arguments, "cert");
  if (noun != arguments.end()) {
    for (auto word = std::next(noun); word != arguments.end(); ++word) {
      const auto name = std::string_view(*word).substr(0, word->find('='));
      if (std::ranges::find(kNames, name) != kNames.end()) {
        word->insert(0, "-");
      }
    }
  }
  return arguments;
}

}  // namespace verger::cli
