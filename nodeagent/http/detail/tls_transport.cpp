#include "nodeagent/http/detail/tls_transport.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <optional>
#include <poll.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "nodeagent/certificates/openssl.h"
#include "nodeagent/http/served_chain.h"

namespace verger::http {
namespace {

using tcp = net::ip::tcp;

/// Fills in what a verified certificate says about its owner.
void describe_peer(SSL* ssl, const std::string& reserved_common_name, Peer& peer) {
  const certificates::Certificate certificate(SSL_get1_peer_certificate(ssl));
  if (certificate == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) {
    return;
  }
  auto info = certificates::describe(certificate.get());
  peer.certificate_is_node =
      certificates::common_name_fits(reserved_common_name, info.common_name) &&
      certificates::has_node_usages(certificate.get());
  peer.certificate_common_name = std::move(info.common_name);
  peer.certificate_names = std::move(info.names);
}

/// What the other side's certificate was refused for, for a person.
struct Refusal {
  std::string certificate{};
  std::string why{};
  std::string advice{};
  [[nodiscard]] std::string text() const {
    return fmt::format("its certificate {} is not accepted: {}; {}", certificate, why, advice);
  }
};

/// No chain leads to a trusted root.
bool is_of_unknown_issuer(int error) {
  return error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
         error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
         error == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE ||
         error == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
         error == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
         error == X509_V_ERR_CERT_SIGNATURE_FAILURE;
}

std::string advice_for(int error, const std::string& roots) {
  if (is_of_unknown_issuer(error)) {
    return fmt::format(
        "no chain leads from it to a trusted root: add the root that issued it to {}, and "
        "intermediates that are not sent along with it; where enrolling made that file, enrol "
        "the agent instead",
        roots);
  }
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "renew it there, and look at both clocks";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "look at both clocks";
    default:
      return "replace it there";
  }
}

/// Of the SSL objects whose server speaks HTTP/2.
int http2_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

class TlsTransport final : public Transport {
 public:
  TlsTransport(StreamSocket plain, std::shared_ptr<const TlsContext::Impl::Loaded> settings,
               UnknownIssuerAdvice unknown_issuer_advice = {})
      : Transport(std::move(plain)),
        settings_(std::move(settings)),
        unknown_issuer_advice_(std::move(unknown_issuer_advice)),
        stream_(socket(), *settings_->context) {}

  net::awaitable<IoResult> shake_hands(net::ssl::stream_base::handshake_type side,
                                       std::string host) {
    if (side == net::ssl::stream_base::client) {
      boost::system::error_code is_name;
      net::ip::make_address(host, is_name);
      if (is_name) {
        SSL_set_tlsext_host_name(stream_.native_handle(), host.c_str());
      }
    }
    stream_.set_verify_callback(
        [this, side, named = net::ssl::host_name_verification(host), host](
            bool chained, net::ssl::verify_context& context) {
          const bool good =
              side == net::ssl::stream_base::client ? named(chained, context) : chained;
          if (!good && !refusal_) {
            note_refusal(chained, host, context.native_handle());
          }
          return good;
        },
        ignored_);
    auto [error] = co_await stream_.async_handshake(side, kTuple);
    if (!error) {
      describe_peer(stream_.native_handle(), settings_->reserved_common_name, peer_);
    }
    co_return finish(error, 0);
  }

  /// Before the handshake: see choose_protocol().
  void offer_http2() { SSL_set_ex_data(stream_.native_handle(), http2_index(), this); }

  /// Before the handshake, as a client.
  void request_http2() {
    static constexpr std::array<unsigned char, 3> kHttp2 = {2, 'h', '2'};
    SSL_set_alpn_protos(stream_.native_handle(), kHttp2.data(), kHttp2.size());
  }
  /// After it.
  bool chose_http2() {
    const unsigned char* chosen = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(stream_.native_handle(), &chosen, &size);
    return std::string_view(reinterpret_cast<const char*>(chosen), size) == "h2";
  }

  /// After a handshake: everything empty where none was shown.
  CertificateInfo peer_certificate() {
    const certificates::Certificate certificate(SSL_get1_peer_certificate(stream_.native_handle()));
    return certificate == nullptr ? CertificateInfo{} : certificates::describe(certificate.get());
  }

  /// Why the other side's certificate was not accepted, or how the handshake failed else.
  std::string failure_text(const IoResult& shaken) {
    if (refusal_) {
      return refusal_->text();
    }
    const bool of_tls = shaken.error.category() == net::error::get_ssl_category();
    return of_tls && ERR_GET_REASON(static_cast<unsigned long>(shaken.error.value())) ==
                         SSL_R_WRONG_VERSION_NUMBER
               ? "the peer does not speak TLS; does the address need http, or another port?"
               : shaken.text();
  }

  net::awaitable<IoResult> read_some(net::mutable_buffer into) override {
    if (timed_out()) {
      co_return finish(net::error::operation_aborted, 0);
    }
    auto [error, bytes] = co_await stream_.async_read_some(into, kTuple);
    co_return finish(error, bytes);
  }

  net::awaitable<IoResult> write(net::const_buffer from) override {
    if (timed_out()) {
      co_return finish(net::error::operation_aborted, 0);
    }
    auto [error, bytes] = co_await net::async_write(stream_, from, kTuple);
    // A record may be out although none of its bytes count as written.
    co_return finish(error, error ? std::max<std::size_t>(bytes, 1) : bytes);
  }

  net::awaitable<void> finish_sending() override {
    // close_notify, and the peer's, which some never send.
    expires_after(std::chrono::seconds(1));
    co_await stream_.async_shutdown(kTuple);
    boost::system::error_code ignored;
    socket().shutdown(net::socket_base::shutdown_send, ignored);
  }

  bool quiet() override {
    if (!socket().is_open() || SSL_pending(stream_.native_handle()) > 0) {
      return false;
    }
    pollfd wait{.fd = socket().native_handle(), .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, 0) == 0;
  }

 private:
  void note_refusal(bool chained, const std::string& host, X509_STORE_CTX* context) {
    const auto* leaf = X509_STORE_CTX_get0_cert(context);
    const auto* at = X509_STORE_CTX_get_current_cert(context);
    const auto info = leaf == nullptr ? CertificateInfo{} : certificates::describe(leaf);
    const auto error = X509_STORE_CTX_get_error(context);
    refusal_ = Refusal{.certificate = certificates::one_line(info)};
    if (chained) {
      refusal_->why = fmt::format(
          "it is not for {}, but for {}", host,
          info.names.empty() ? info.common_name : fmt::format("{}", fmt::join(info.names, ", ")));
      refusal_->advice = "use one of its names in the URL, or issue one that has this name";
    } else {
      refusal_->why = X509_verify_cert_error_string(error);
      if (at != nullptr && leaf != nullptr && X509_cmp(at, leaf) != 0) {
        refusal_->why +=
            fmt::format(", namely {}", certificates::one_line(certificates::describe(at)));
      }
      if (is_of_unknown_issuer(error) && unknown_issuer_advice_) {
        refusal_->advice = unknown_issuer_advice_(info);
      }
      if (refusal_->advice.empty()) {
        refusal_->advice = advice_for(error, settings_->trusted_roots);
      }
    }
  }

  std::shared_ptr<const TlsContext::Impl::Loaded> settings_;
  UnknownIssuerAdvice unknown_issuer_advice_;
  std::optional<Refusal> refusal_;
  boost::system::error_code ignored_;
  net::ssl::stream<StreamSocket&> stream_;
};

}  // namespace

void choose_protocol(ssl_ctx_st* context) {
  SSL_CTX_set_alpn_select_cb(
      context,
      [](SSL* ssl, const unsigned char** chosen, unsigned char* chosen_size,
         const unsigned char* offered, unsigned offered_size, void*) {
        static constexpr std::array<unsigned char, 12> kProtocols = {2,   'h', '2', 8,   'h', 't',
                                                                     't', 'p', '/', '1', '.', '1'};
        unsigned char* found = nullptr;
        if (SSL_get_ex_data(ssl, http2_index()) == nullptr ||
            SSL_select_next_proto(&found, chosen_size, kProtocols.data(), kProtocols.size(),
                                  offered, offered_size) != OPENSSL_NPN_NEGOTIATED) {
          return SSL_TLSEXT_ERR_NOACK;
        }
        *chosen = found;
        return SSL_TLSEXT_ERR_OK;
      },
      nullptr);
}

net::awaitable<Result<std::shared_ptr<Transport>>> accept_tls(
    StreamSocket socket, std::shared_ptr<TlsContext> tls, std::chrono::steady_clock::duration limit,
    bool http2) {
  const auto transport = std::make_shared<TlsTransport>(std::move(socket), tls->impl().current());
  if (http2) {
    transport->offer_http2();
  }
  transport->expires_after(limit);
  const auto shaken = co_await transport->shake_hands(net::ssl::stream_base::server, "");
  if (shaken.error) {
    co_return Error{Errc::kUnavailable,
                    fmt::format("{}: TLS handshake: {}", transport->peer().address,
                                transport->failure_text(shaken))};
  }
  co_return std::static_pointer_cast<Transport>(transport);
}

net::awaitable<Result<std::shared_ptr<Transport>>> connect_tls(
    StreamSocket socket, std::shared_ptr<TlsContext> tls, Endpoint to,
    std::chrono::steady_clock::time_point limit,
    std::function<Result<void>(const CertificateInfo&)> accept,
    UnknownIssuerAdvice unknown_issuer_advice) {
  const auto transport = std::make_shared<TlsTransport>(std::move(socket), tls->impl().current(),
                                                        std::move(unknown_issuer_advice));
  transport->expires_at(limit);
  const auto shaken = co_await transport->shake_hands(net::ssl::stream_base::client, to.host);
  if (shaken.error) {
    co_return Error{Errc::kUnavailable, fmt::format("{}: TLS handshake: {}", to.url(),
                                                    transport->failure_text(shaken))};
  }
  if (accept) {
    if (auto accepted = accept(transport->peer_certificate()); !accepted) {
      transport->close();
      co_return Error{Errc::kUnavailable,
                      fmt::format("{}: {}", to.url(), accepted.error().message)};
    }
  }
  co_return std::static_pointer_cast<Transport>(transport);
}

net::awaitable<Result<std::shared_ptr<Transport>>> connect_tls_http2(
    StreamSocket socket, std::shared_ptr<TlsContext> tls, Endpoint to,
    std::chrono::steady_clock::time_point limit) {
  const auto transport = std::make_shared<TlsTransport>(std::move(socket), tls->impl().current());
  transport->request_http2();
  transport->expires_at(limit);
  const auto shaken = co_await transport->shake_hands(net::ssl::stream_base::client, to.host);
  if (shaken.error) {
    co_return Error{Errc::kUnavailable, fmt::format("{}: TLS handshake: {}", to.url(),
                                                    transport->failure_text(shaken))};
  }
  if (!transport->chose_http2()) {
    transport->close();
    co_return Error{Errc::kUnavailable,
                    fmt::format("{}: the peer does not speak HTTP/2", to.url())};
  }
  co_return std::static_pointer_cast<Transport>(transport);
}

namespace {

/// A connection that is made only to look at the certificates. The timer's handler may run after
/// the coroutine has resumed.
struct Probe {
  net::ssl::context context{net::ssl::context::tls_client};
  net::ssl::stream<tcp::socket> stream;
  net::steady_timer timer;
  Probe(tcp::socket socket, std::chrono::steady_clock::time_point limit)
      : stream(std::move(socket), context), timer(stream.get_executor(), limit) {}
};

}  // namespace

net::awaitable<Result<std::string>> served_chain(net::any_io_executor executor, Endpoint from,
                                                 std::chrono::milliseconds deadline) {
  const auto limit = std::chrono::steady_clock::now() + deadline;
  VERGER_CO_TRY(auto socket, co_await connect_tcp(executor, from, limit));
  const auto probe = std::make_shared<Probe>(std::move(socket), limit);
  boost::system::error_code ignored;
  // Whether it is to be trusted is not the question here.
  probe->stream.set_verify_mode(net::ssl::verify_none, ignored);
  boost::system::error_code is_name;
  net::ip::make_address(from.host, is_name);
  if (is_name) {
    SSL_set_tlsext_host_name(probe->stream.native_handle(), from.host.c_str());
  }
  probe->timer.async_wait([probe](boost::system::error_code stopped) {
    if (!stopped) {
      boost::system::error_code closed;
      probe->stream.next_layer().close(closed);
    }
  });
  auto [error] = co_await probe->stream.async_handshake(net::ssl::stream_base::client, kTuple);
  probe->timer.cancel();
  // The leaf is the first of them. A server that wants a client's certificate ends the handshake
  // after it has shown its own.
  const auto* shown = SSL_get_peer_cert_chain(probe->stream.native_handle());
  std::string out;
  for (int i = 0; shown != nullptr && i < sk_X509_num(shown); ++i) {
    VERGER_CO_TRY(const auto text, certificates::to_pem(sk_X509_value(shown, i)));
    out += text;
  }
  if (out.empty()) {
    co_return Error{Errc::kUnavailable,
                    fmt::format("{}: TLS handshake: {}", from.url(),
                                error ? error.message() : "no certificate was shown")};
  }
  co_return out;
}

net::awaitable<Result<std::string>> served_root(net::any_io_executor executor, Endpoint from,
                                                std::string fingerprint,
                                                std::chrono::milliseconds deadline) {
  const auto url = from.url();
  VERGER_CO_TRY(const auto chain, co_await served_chain(executor, std::move(from), deadline));
  VERGER_CO_TRY(const auto shown, certificates::read_certificate_list(chain));
  for (const auto& each : shown) {
    if (certificates::describe(each.get()).fingerprint == fingerprint &&
        X509_self_signed(each.get(), 1) == 1) {
      co_return certificates::to_pem(each.get());
    }
  }
  co_return Error{Errc::kRefused,
                  fmt::format("{} shows no root with the fingerprint {}: it is another server, or "
                              "its certificate is of another authority; then give the root's file",
                              url, fingerprint)};
}

net::awaitable<Result<CertificateInfo>> served_certificate(net::any_io_executor executor,
                                                           Endpoint from,
                                                           std::chrono::milliseconds deadline) {
  VERGER_CO_TRY(const auto chain, co_await served_chain(executor, from, deadline));
  VERGER_CO_TRY(const auto shown, certificates::read_certificate_list(chain));
  auto out = certificates::describe(shown.front().get());
  for (std::size_t i = 1; i < shown.size(); ++i) {
    out.issuers.push_back(certificates::describe(shown[i].get()));
  }
  co_return out;
}

}  // namespace verger::http
