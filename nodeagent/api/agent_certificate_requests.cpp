#include <algorithm>
#include <fmt/format.h>

#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/api/detail/field_table.h"
#include "nodeagent/api/detail/sha256_field.h"

/// What is asked of an agent about certificates.
namespace verger::api {
namespace {

/// {"source": ...}
struct SourceRequest {
  CertificateSource source;
};
constexpr auto rows_of(const SourceRequest* /*type*/) {
  return std::tuple{needed_row("source", &SourceRequest::source)};
}

/// A change is named as operations are.
void check_change(Fields& fields, std::string_view change) {
  if (change.empty() || change.size() > 128 || !std::ranges::all_of(change, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_' || c == '.' || c == ':';
      })) {
    fields.wrong("change", "1 to 128 letters, digits or -_.: were expected");
  }
}

}  // namespace

static constexpr auto rows_of(const CertificateSource* /*type*/) {
  using T = CertificateSource;
  return std::tuple{row("set", &T::set), row("node", &T::node),
                    row("certificatePath", &T::certificate_path), row("keyPath", &T::key_path),
                    row("rootsPath", &T::roots_path)};
}

static void check_rows(Fields& fields, const CertificateSource& source) {
  check_sha256(fields, "set", source.set);
  const bool paths =
      !source.certificate_path.empty() || !source.key_path.empty() || !source.roots_path.empty();
  if (source.set.empty() == !paths) {
    fields.wrong("set", "either set and node, or certificatePath and others, were expected");
  } else if (paths ? source.certificate_path.empty() : source.node.empty()) {
    fields.wrong(paths ? "certificatePath" : "node", "is missing");
  }
  for (const auto& path : {source.certificate_path, source.key_path, source.roots_path}) {
    if (!path.empty() && path.front() != '/') {
      fields.wrong("certificatePath", fmt::format("\"{}\" is no absolute path", path));
    }
  }
}

static constexpr auto rows_of(const CertificateKeyRequest* /*type*/) {
  using T = CertificateKeyRequest;
  return std::tuple{needed_row("change", &T::change), needed_row("commonName", &T::common_name),
                    row("dnsNames", &T::dns_names), row("ipAddresses", &T::ip_addresses),
                    row("keyType", &T::key_type)};
}
static void check_rows(Fields& fields, const CertificateKeyRequest& request) {
  check_change(fields, request.change);
}

static constexpr auto rows_of(const HandshakesRequest::Peer* /*type*/) {
  using T = HandshakesRequest::Peer;
  return std::tuple{needed_row("name", &T::name), needed_row("url", &T::url)};
}

static constexpr auto rows_of(const HandshakesRequest* /*type*/) {
  using T = HandshakesRequest;
  return std::tuple{needed_row("peers", &T::peers), row("staged", &T::staged)};
}

static constexpr auto rows_of(const CertificateStage* /*type*/) {
  using T = CertificateStage;
  return std::tuple{needed_row("change", &T::change), needed_row("source", &T::source),
                    row("serial", &T::serial), row("digest", &T::digest)};
}
static void check_rows(Fields& fields, const CertificateStage& parameters) {
  check_change(fields, parameters.change);
}

static constexpr auto rows_of(const CertificateSwitch* /*type*/) {
  using T = CertificateSwitch;
  return std::tuple{needed_row("change", &T::change), needed_row("phase", &T::phase),
                    row("reload", &T::reload)};
}
static void check_rows(Fields& fields, const CertificateSwitch& parameters) {
  check_change(fields, parameters.change);
}

static constexpr auto rows_of(const CertificateRestore* /*type*/) {
  using T = CertificateRestore;
  return std::tuple{needed_row("change", &T::change), needed_row("phase", &T::phase)};
}
static void check_rows(Fields& fields, const CertificateRestore& parameters) {
  check_change(fields, parameters.change);
}

static constexpr auto rows_of(const CertificateDiscard* /*type*/) {
  return std::tuple{needed_row("change", &CertificateDiscard::change)};
}
static void check_rows(Fields& fields, const CertificateDiscard& parameters) {
  check_change(fields, parameters.change);
}

std::string to_text(const CertificateSource& source) { return text_of_rows(SourceRequest{source}); }
std::string to_text(const CertificateKeyRequest& request) { return text_of_rows(request); }
std::string to_text(const HandshakesRequest& request) { return text_of_rows(request); }
std::string to_text(const CertificateStage& parameters) { return text_of_rows(parameters); }
std::string to_text(const CertificateSwitch& parameters) { return text_of_rows(parameters); }
std::string to_text(const CertificateRestore& parameters) { return text_of_rows(parameters); }
std::string to_text(const CertificateDiscard& parameters) { return text_of_rows(parameters); }

Result<CertificateSource> parse_certificate_source(std::string_view body) {
  VERGER_TRY(auto request, parse_rows<SourceRequest>(body, "request", Errc::kInvalidArgument));
  return std::move(request.source);
}

Result<CertificateKeyRequest> parse_certificate_key_request(std::string_view body) {
  return parse_rows<CertificateKeyRequest>(body, "request", Errc::kInvalidArgument);
}

Result<HandshakesRequest> parse_handshakes_request(std::string_view body) {
  return parse_rows<HandshakesRequest>(body, "request", Errc::kInvalidArgument);
}

Result<CertificateStage> parse_certificate_stage(std::string_view parameters) {
  return parse_rows<CertificateStage>(parameters, "parameters", Errc::kInvalidArgument);
}

Result<CertificateSwitch> parse_certificate_switch(std::string_view parameters) {
  return parse_rows<CertificateSwitch>(parameters, "parameters", Errc::kInvalidArgument);
}

Result<CertificateRestore> parse_certificate_restore(std::string_view parameters) {
  return parse_rows<CertificateRestore>(parameters, "parameters", Errc::kInvalidArgument);
}

Result<CertificateDiscard> parse_certificate_discard(std::string_view parameters) {
  return parse_rows<CertificateDiscard>(parameters, "parameters", Errc::kInvalidArgument);
}

}  // namespace verger::api
