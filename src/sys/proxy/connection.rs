//! Connection of a program to the proxy, with consecutive requests or a tunnel.

use super::client_hello::{self, HelloError};
use super::{DeniedHost, DeniedHosts, Proxy, ProxyRefusal, ProxyTarget, headers};
use crate::sys::http::fetch::FetchError;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderValue, TRANSFER_ENCODING};
use hyper::http::Extensions;
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::io::{InspectReader, InspectWriter};

/// Maximum size in bytes of a request or response head, and of buffered data.
const HEAD_BYTES: usize = 64 * 1024;
/// Timeout for a whole head, and between two requests.
const HEAD_LIMIT: Duration = Duration::from_secs(30);
/// Time after which a connection without any traffic is closed.
const IDLE: Duration = Duration::from_secs(600);
/// Buffer size of a tunnel in each direction, in bytes.
const CHUNK_BYTES: usize = 16 * 1024;

type Body = Either<Full<Bytes>, Incoming>;

/// Serves one program until it disconnects or times out.
pub(super) async fn serve(stream: TcpStream, proxy: Proxy, denied: DeniedHosts) {
    let _ = stream.set_nodelay(true);
    let moved = Arc::new(AtomicU64::new(0));
    let client = Arc::new(ProxyClient { proxy, denied, tunnel: Mutex::default(), drivers: Mutex::default() });
    let service = hyper::service::service_fn(|request| {
        let client = Arc::clone(&client);
        async move { Ok::<_, Infallible>(client.answer(request).await) }
    });
    let served = async {
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_LIMIT)
            .max_buf_size(HEAD_BYTES)
            .max_header_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(count_traffic(stream, &moved)), service)
            .with_upgrades();
        let _ = connection.await;
        let tunnel = client.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tunnel) = tunnel {
            tunnel.await;
        }
    };
    tokio::select! {
        () = served => {}
        () = wait_until_idle(&moved) => {}
    }
}

/// Counts the transferred bytes, so that an idle connection can be detected.
fn count_traffic(stream: TcpStream, moved: &Arc<AtomicU64>) -> impl AsyncRead + AsyncWrite + Send + Unpin + 'static {
    let (read, written) = (Arc::clone(moved), Arc::clone(moved));
    let count = |counter: &AtomicU64, bytes: &[u8]| {
        counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    };
    let stream = InspectReader::new(stream, move |bytes: &[u8]| count(&read, bytes));
    InspectWriter::new(stream, move |bytes: &[u8]| count(&written, bytes))
}

async fn wait_until_idle(moved: &AtomicU64) {
    let mut last = moved.load(Ordering::Relaxed);
    loop {
        tokio::time::sleep(IDLE).await;
        let now = moved.load(Ordering::Relaxed);
        if now == last {
            return;
        }
        last = now;
    }
}

struct ProxyClient {
    proxy: Proxy,
    denied: DeniedHosts,
    /// Tunnel that starts after the response.
    tunnel: Mutex<Option<BoxFuture<'static, ()>>>,
    /// Server connections for plain HTTP requests. They are closed with this connection.
    drivers: Mutex<JoinSet<()>>,
}

/// An error response of the proxy itself.
struct ProxyError {
    status: StatusCode,
    /// Short reason phrase. Many programs show only this phrase.
    phrase: &'static [u8],
    text: String,
}

impl ProxyError {
    fn invalid(text: &str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, phrase: b"Bad request (aye)", text: text.to_owned() }
    }

    fn blocked(text: &str) -> Self {
        Self { status: StatusCode::FORBIDDEN, phrase: b"Not allowed for this command (aye)", text: text.to_owned() }
    }

    fn unreachable(text: &str) -> Self {
        Self { status: StatusCode::BAD_GATEWAY, phrase: b"Unreachable (aye)", text: text.to_owned() }
    }

    fn response(self) -> Response<Body> {
        let mut response = Response::new(Either::Left(Full::new(Bytes::from(format!("aye: {}\n", self.text)))));
        *response.status_mut() = self.status;
        response.extensions_mut().insert(ReasonPhrase::from_static(self.phrase));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

impl ProxyClient {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let answered = if request.method() == Method::CONNECT { self.open(request).await } else { self.forward(request).await };
        answered.unwrap_or_else(ProxyError::response)
    }

    /// Handles `CONNECT host:port`.
    async fn open(&self, mut request: Request<Incoming>) -> Result<Response<Body>, ProxyError> {
        let bare = request.uri().scheme().is_none() && request.uri().path_and_query().is_none();
        let authority = request.uri().authority().filter(|authority| bare && authority.port().is_some());
        let authority = authority.ok_or_else(|| ProxyError::invalid("CONNECT needs a host and a port, such as `docs.rs:443`"))?;
        if request.headers().contains_key(CONTENT_LENGTH) || request.headers().contains_key(TRANSFER_ENCODING) {
            return Err(ProxyError::invalid("a CONNECT request must not have a body"));
        }
        let server = self.admit(&format!("https://{authority}/"), "CONNECT")?;
        let upstream = self.connect(&server).await?;
        let upgrade = hyper::upgrade::on(&mut request);
        let tunnel = tunnel(upgrade, upstream, server, self.denied.clone()).boxed();
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
        Ok(Response::new(Either::Left(Full::default())))
    }

    /// Handles a plain HTTP request with an absolute URL.
    async fn forward(&self, mut request: Request<Incoming>) -> Result<Response<Body>, ProxyError> {
        let uri = request.uri().clone();
        let Some(authority) = uri.authority().filter(|_| uri.scheme().is_some()) else {
            return Err(ProxyError::invalid("this is a proxy; request `http://host/path`, or use CONNECT for https"));
        };
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(ProxyError::invalid("only http requests are forwarded; use CONNECT for https"));
        }
        let server = self.admit(&uri.to_string(), request.method().as_str())?;
        if !headers::host_matches(request.headers(), authority) {
            return Err(ProxyError::invalid("the `Host` header does not match the host in the request URL"));
        }
        headers::strip(request.headers_mut());
        let named = if server.port == 80 { server.host.to_string() } else { server.to_string() };
        let named = HeaderValue::from_str(&named).map_err(|_| ProxyError::invalid("the host is not valid in a header"))?;
        request.headers_mut().insert(HOST, named);
        *request.uri_mut() = Uri::from(uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")));
        *request.version_mut() = Version::HTTP_11;
        *request.extensions_mut() = Extensions::new();
        let upstream = self.connect(&server).await?;
        let cut = |error: hyper::Error| ProxyError::unreachable(&format!("lost the connection to `{server}`: {error}"));
        let (mut sender, driver) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(HEAD_BYTES)
            .max_header_size(HEAD_BYTES)
            .handshake(TokioIo::new(upstream))
            .await
            .map_err(cut)?;
        self.drive(driver.map(|_| ()));
        let (mut parts, body) = sender.send_request(request).await.map_err(cut)?.into_parts();
        if parts.status.is_informational() {
            return Err(ProxyError::unreachable(&format!("`{server}` tried to switch to a protocol other than HTTP")));
        }
        headers::strip(&mut parts.headers);
        parts.extensions = Extensions::new();
        parts.version = Version::HTTP_11;
        Ok(Response::from_parts(parts, Either::Right(body)))
    }

    fn drive(&self, driver: impl Future<Output = ()> + Send + 'static) {
        let mut drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        while drivers.try_join_next().is_some() {}
        drivers.spawn(driver);
    }

    fn admit(&self, url: &str, method: &str) -> Result<ProxyTarget, ProxyError> {
        self.proxy.gate.admit(url, method).map_err(|ProxyRefusal { reason, denied }| {
            if let Some(denied) = denied {
                self.denied.add(denied);
            }
            ProxyError::blocked(&reason)
        })
    }

    async fn connect(&self, server: &ProxyTarget) -> Result<TcpStream, ProxyError> {
        let allowed = |address| self.proxy.gate.may_connect(server, address);
        let stream = self.proxy.fetcher.connect(&server.host, server.port, &allowed).await;
        let stream = stream.map_err(|error| match error {
            FetchError::Refused(reason) => {
                self.denied.add(denied_host(server, &reason));
                ProxyError::blocked(&reason)
            }
            FetchError::Unreachable { .. } => {
                ProxyError::unreachable(&format!("{error}; aye does not use an upstream proxy for this"))
            }
            error => ProxyError::unreachable(&error.to_string()),
        })?;
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

/// Returns the record of a server that was allowed, but not for this connection.
fn denied_host(server: &ProxyTarget, reason: &str) -> DeniedHost {
    DeniedHost { host: server.host.to_string(), port: server.port, reason: reason.to_owned(), can_open: false }
}

/// Passes bytes in both directions after checking the first ones.
async fn tunnel(upgrade: OnUpgrade, mut upstream: TcpStream, server: ProxyTarget, denied: DeniedHosts) {
    let Ok(client) = upgrade.await else { return };
    let mut client = TokioIo::new(client);
    match client_hello::read(&mut client, &server.host).await {
        Ok(first) => {
            if upstream.write_all(&first).await.is_ok() {
                drop(first);
                let _ = copy_bidirectional_with_sizes(&mut client, &mut upstream, CHUNK_BYTES, CHUNK_BYTES).await;
            }
        }
        Err(HelloError::Silent) => {}
        Err(HelloError::NotTls) => {
            let reason = "a tunnel accepts only TLS, but the client sent other data";
            denied.add(denied_host(&server, reason));
            let _ = client.write_all(format!("aye: {reason}\n").as_bytes()).await;
        }
        Err(HelloError::Other(name)) => {
            denied.add(DeniedHost {
                host: name,
                port: server.port,
                reason: format!("requested in a tunnel to `{server}`"),
                can_open: false,
            });
            let _ = client.write_all(client_hello::ALERT).await;
        }
    }
    let _ = client.shutdown().await;
}
