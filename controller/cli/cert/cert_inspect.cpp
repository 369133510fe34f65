#include "controller/cli/cert/cert_inspect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/cert/cert_files.h"
#include "controller/cli/cert/cert_served.h"
#include "controller/cli/times.h"
#include "engine/base/clock.h"
#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/certificates/issuing.h"
#include "nodeagent/certificates/key.h"

namespace verger::cli {
namespace {

using certificates::CertificateDetails;
using nlohmann::json;

struct InspectOptions {
  std::vector<std::string> files{};
  std::vector<std::string> nodes{};
};

std::string kind_text(const CertificateDetails& certificate) {
  return certificate.is_authority ? certificate.is_self_signed ? "root CA" : "intermediate CA"
         : certificate.is_node    ? "node (server and client)"
                                  : "leaf";
}

/// "in 364 d 23 h", "ended 3 d 4 h ago".
std::string ends_text(const std::string& not_after, Ticks now) {
  const auto end = parse_ticks(not_after);
  if (!end) {
    return "?";
  }
  const auto left = std::chrono::seconds((end->value() - now.value()) / kTicksPerSecond);
  return left.count() >= 0 ? "in " + length_text(left) : "ended " + length_text(-left) + " ago";
}

json certificate_json(const CertificateDetails& certificate) {
  const auto& info = certificate.info;
  return json{{"kind", "certificate"},
              {"subject", info.subject},
              {"issuer", info.issuer},
              {"common_name", info.common_name},
              {"serial", info.serial},
              {"not_before", info.not_before},
              {"not_after", info.not_after},
              {"names", info.names},
              {"uris", info.uris},
              {"key", certificate.key},
              {"signature", certificate.signature},
              {"usages", certificate.usages},
              {"extended_usages", certificate.extended_usages},
              {"authority", certificate.is_authority},
              {"self_signed", certificate.is_self_signed},
              {"node", certificate.is_node},
              {"thumbprint_sha1", certificate.thumbprint},
              {"fingerprint_sha256", info.fingerprint}};
}

void print_certificate(std::ostream& out, const CertificateDetails& certificate, Ticks now) {
  const auto& info = certificate.info;
  const auto line = [&](std::string_view label, const std::string& text) {
    out << fmt::format("  {:<14}{}\n", label, text.empty() ? "-" : text);
  };
  line("subject", info.subject);
  line("issuer", certificate.is_self_signed ? "itself" : info.issuer);
  line("is a", kind_text(certificate));
  line("valid from", info.not_before);
  line("valid until", fmt::format("{} ({})", info.not_after, ends_text(info.not_after, now)));
  line("names", fmt::format("{}", fmt::join(info.names, ", ")));
  line("usages", fmt::format("{}", fmt::join(certificate.usages, ", ")));
  line("extended", fmt::format("{}", fmt::join(certificate.extended_usages, ", ")));
  line("key", certificate.key + ", " + certificate.signature);
  line("serial", info.serial);
  line("thumbprint", certificate.thumbprint + " (SHA-1)");
  line("fingerprint", info.fingerprint + " (SHA-256)");
}

/// Certificates of a file or of a node, each as one object.
void show_certificates(const LocalContext& context, const std::string& of,
                       const std::vector<CertificateDetails>& found) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (context.json) {
      auto object = certificate_json(found[i]);
      object["from"] = of;
      object["position"] = i;
      context.out << object.dump() << '\n';
    } else {
      context.out << (found.size() > 1 ? fmt::format("{} ({} of {})\n", of, i + 1, found.size())
                                       : of + "\n");
      print_certificate(context.out, found[i], system_clock().now());
    }
  }
}

void show_key(const LocalContext& context, const std::string& path, const std::string& text) {
  const auto key = certificates::read_key(text);
  const bool encrypted = text.contains("ENCRYPTED");
  const auto kind = key ? certificates::kind_of(key->get()) : std::string();
  if (context.json) {
    context.out << json{{"kind", "private_key"},
                        {"from", path},
                        {"encrypted", encrypted},
                        {"key", kind.empty() ? json() : json(kind)}}
                       .dump()
                << '\n';
    return;
  }
  context.out << fmt::format("{}\n  is a          private key{}\n", path,
                             encrypted ? ", encrypted" : ", " + kind);
}

Result<void> show_request(const LocalContext& context, const std::string& path,
                          const std::string& text) {
  VERGER_TRY(const auto terms, certificates::terms_of_request(text));
  auto names = terms.dns_names;
  names.insert(names.end(), terms.ip_addresses.begin(), terms.ip_addresses.end());
  if (context.json) {
    context.out << json{{"kind", "request"},
                        {"from", path},
                        {"common_name", terms.common_name},
                        {"names", names}}
                       .dump()
                << '\n';
  } else {
    context.out << fmt::format(
        "{}\n  is a          request (CSR), signed by its key\n  subject   "
        "    CN={}\n  names         {}\n",
        path, terms.common_name, fmt::join(names, ", "));
  }
  return {};
}

Result<void> show_file(const LocalContext& context, const std::string& path) {
  VERGER_TRY(const auto text, text_of_file(path));
  if (text.contains("PRIVATE KEY-----") && !text.contains("BEGIN CERTIFICATE-----")) {
    if (!text.contains("ENCRYPTED")) {
      VERGER_RETURN_IF_ERROR(certificates::read_key(text));
    }
    show_key(context, path, text);
    return {};
  }
  if (text.contains("CERTIFICATE REQUEST-----")) {
    return show_request(context, path, text);
  }
  VERGER_TRY(const auto found, certificates::read_details(text));
  show_certificates(context, path, found);
  return {};
}

Result<void> show_node(const LocalContext& context, const std::string& url) {
  VERGER_TRY(const auto served, served_by(url));
  VERGER_TRY(const auto found, certificates::read_details(served));
  show_certificates(context, url, found);
  return {};
}

int run_inspect(const LocalContext& context, const InspectOptions& options) {
  int status = kDone;
  const auto take = [&](const std::string& what, const Result<void>& result) {
    if (!result) {
      const auto& message = result.error().message;
      context.err << (message.contains(what) ? fmt::format("verger: {}\n", message)
                                             : fmt::format("verger: {}: {}\n", what, message));
      status = kFailed;
    }
  };
  for (const auto& file : options.files) {
    take(file, show_file(context, file));
  }
  for (const auto& node : options.nodes) {
    take(node, show_node(context, node));
  }
  return status;
}

}  // namespace

void add_cert_inspect(CLI::App& cert, LocalCommand& chosen) {
  const auto options = std::make_shared<InspectOptions>();
  auto* command = cert.add_subcommand("inspect", "What certificates, keys and requests (CSR) say");
  command->footer(
      "Examples: verger cert inspect node1/node.crt ca/ca.crt; verger cert inspect --node "
      "https://n1.example.com:2113");
  auto* files = command->add_option("FILE", options->files, "PEM, certificates DER too");
  command
      ->add_option("--node", options->nodes,
                   "URL of a node: what it shows to a new TLS connection, trusted or not")
      ->allow_extra_args(false);
  command->callback([options, files, &chosen] {
    if (files->count() == 0 && options->nodes.empty()) {
      throw CLI::RequiredError("FILE or --node");
    }
    chosen = [options](const LocalContext& context) { return run_inspect(context, *options); };
  });
}

}  // namespace verger::cli
