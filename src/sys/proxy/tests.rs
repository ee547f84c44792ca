//! Tests of the proxy over loopback, each with its own names, servers and rules.

mod requests;
mod tunnels;

use super::*;
use crate::sys::http::fetch::Resolver;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Gate that allows only the listed servers.
struct Listed(Vec<(String, u16)>);

impl Gate for Listed {
    fn admit(&self, url: &str, _: &str) -> Result<ProxyTarget, ProxyRefusal> {
        let unreadable = || ProxyRefusal { reason: "unreadable".to_owned(), denied: None };
        let parsed = url::Url::parse(url).map_err(|_| unreadable())?;
        if parsed.username() != "" {
            return Err(unreadable());
        }
        let (Some(host), Some(port)) = (parsed.host(), parsed.port_or_known_default()) else { return Err(unreadable()) };
        let name = host.to_string();
        if !self.0.contains(&(name.clone(), port)) {
            let denied = DeniedHost { host: name, port, reason: "not listed".to_owned(), can_open: true };
            return Err(ProxyRefusal { reason: format!("{host}:{port} is not listed"), denied: Some(denied) });
        }
        Ok(ProxyTarget { url: url.to_owned(), host: host.to_owned(), port })
    }

    fn may_connect(&self, server: &ProxyTarget, address: IpAddr) -> Result<(), String> {
        if address.is_loopback() { Err(format!("`{server}` leads to `{address}`")) } else { Ok(()) }
    }
}

/// Resolver that returns these addresses one after the other and then repeats the last one.
struct Names(Mutex<Vec<IpAddr>>);

impl Resolver for Names {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        let mut left = self.0.lock().unwrap();
        let found = if left.len() > 1 { left.remove(0) } else { left[0] };
        std::future::ready(Ok(vec![found])).boxed()
    }
}

const PUBLIC: &str = "93.184.216.34";
const OPEN: &[(&str, u16)] = &[("a.example", 80), ("a.example", 443), ("a.example", 8080), (PUBLIC, 443)];

struct Net {
    proxy: SocketAddr,
    serving: JoinHandle<Infallible>,
    denied: DeniedHosts,
    /// Addresses to which the proxy has connected.
    connected: Arc<Mutex<Vec<IpAddr>>>,
}

impl Net {
    /// Creates a network in which every outgoing connection is handled by `server`.
    async fn new<F: Future<Output = ()> + Send + 'static>(server: impl Fn(TcpStream) -> F + Send + 'static) -> Self {
        Self::with(&[PUBLIC], server).await
    }

    async fn with<F: Future<Output = ()> + Send + 'static>(
        addresses: &[&str],
        server: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self {
        let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let there = upstream.local_addr().unwrap();
        tokio::spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, _)) = upstream.accept().await {
                serving.spawn(server(stream));
            }
        });
        let connected = Arc::new(Mutex::new(Vec::new()));
        let routed = Arc::clone(&connected);
        let route = move |to: IpAddr| {
            routed.lock().unwrap().push(to);
            there
        };
        let names = Names(Mutex::new(addresses.iter().map(|one| one.parse().unwrap()).collect()));
        let gate = Arc::new(Listed(OPEN.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect()));
        let proxy = Proxy { gate, fetcher: Fetcher::for_test(Arc::new(names), Arc::new(route)) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, denied) = (listener.local_addr().unwrap(), DeniedHosts::default());
        let serving = tokio::spawn(proxy.serve(listener, denied.clone()));
        Self { proxy: address, serving, denied, connected }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.proxy).await.unwrap()
    }

    /// Sends these bytes and returns everything received until the proxy closes the connection.
    async fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        let _ = stream.write_all(bytes.as_ref()).await;
        all(&mut stream).await
    }

    /// Returns every server to which access was denied, as `host:port`.
    fn refused(&self) -> Vec<String> {
        self.denied.list().iter().map(|one| format!("{}:{}", one.host, one.port)).collect()
    }

    fn connections(&self) -> usize {
        self.connected.lock().unwrap().len()
    }
}

async fn all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = stream.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads until the data ends with `end`, then returns the data.
async fn until(stream: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        let mut one = [0];
        if stream.read(&mut one).await.unwrap_or(0) == 0 {
            break;
        }
        bytes.push(one[0]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Server that records the data of each connection and sends the same response to every request head.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn server(&self, answer: &'static str) -> impl Fn(TcpStream) -> BoxFuture<'static, ()> + Send + 'static {
        let heard = self.0.clone();
        move |mut stream| {
            let heard = Arc::clone(&heard);
            async move {
                let head = until(&mut stream, "\r\n\r\n").await;
                let at = {
                    let mut heard = heard.lock().unwrap();
                    heard.push(head);
                    heard.len() - 1
                };
                let _ = stream.write_all(answer.as_bytes()).await;
                let rest = all(&mut stream).await;
                heard.lock().unwrap()[at].push_str(&rest);
            }
            .boxed()
        }
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

const FINE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn dropping_the_proxy_closes_every_connection() {
    let net = Net::new(|mut stream: TcpStream| async move {
        let _ = all(&mut stream).await;
    })
    .await;
    let mut waiting = net.connect().await;
    waiting.write_all(b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n").await.unwrap();
    let mut quiet = net.connect().await;
    let mut tunnel = net.connect().await;
    tunnel.write_all(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(until(&mut tunnel, "\r\n\r\n").await.starts_with("HTTP/1.1 200"));
    net.serving.abort();
    assert_eq!(all(&mut waiting).await + &all(&mut quiet).await + &all(&mut tunnel).await, "");
    assert!(TcpStream::connect(net.proxy).await.is_err());
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let net = Net::new(Heard::default().server(FINE)).await;
    let mut first = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let mut stream = net.connect().await;
        stream.write_all(b"CONNECT b.example:1 HTTP/1.1\r\nX:").await.unwrap();
        first.push(stream);
    }
    let mut next = net.connect().await;
    next.write_all(b"CONNECT c.example:1 HTTP/1.1\r\n\r\n").await.unwrap();
    // One of the earlier connections receives its response and closes.
    first[0].write_all(b" y\r\n\r\n").await.unwrap();
    assert!(all(&mut first[0]).await.starts_with("HTTP/1.1 403"));
    assert!(all(&mut next).await.starts_with("HTTP/1.1 403"));
    assert_eq!(net.refused(), ["b.example:1", "c.example:1"]);
}

#[tokio::test(start_paused = true)]
async fn clients_that_send_no_complete_request_or_tls_greeting_time_out() {
    let net = Net::new(|mut stream: TcpStream| async move {
        let _ = all(&mut stream).await;
    })
    .await;
    for start in ["", "G", "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: "] {
        let answer = net.ask(start).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{start}: {answer}");
    }
    let answer = net.ask("CONNECT a.example:443 HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"), "{answer}");
}
