//! OAuth callback server. It listens on a port of 127.0.0.1 until it has received one callback, rejecting every other
//! request.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

const PATH: &str = "/callback";
/// Sign-in timeout. It leaves enough time to find a password, a phone and a code.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);
const HEAD_BYTES: usize = 16 << 10;
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Maximum number of concurrent connections. It is not 1, because a browser may open a few in advance.
const MAX_CONNECTIONS: usize = 16;

pub(crate) struct CallbackServer {
    listener: TcpListener,
    port: u16,
}

impl CallbackServer {
    /// Starts listening on this port, or on any free port if `port` is `None`.
    pub(crate) async fn open(port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Returns the URI to which the browser is redirected.
    pub(crate) fn uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits for the callback and returns its URL. Only a request with the expected `state` is accepted.
    pub(crate) async fn arrival(self, state: &str) -> Result<String, String> {
        let minutes = TIMEOUT.as_secs() / 60;
        let over = || format!("timed out: the browser did not return within {minutes} minutes; you are not signed in");
        tokio::time::timeout(TIMEOUT, self.first(state)).await.map_err(|_| over())
    }

    async fn first(&self, state: &str) -> String {
        let mut open: JoinSet<Option<String>> = JoinSet::new();
        loop {
            tokio::select! {
                taken = self.listener.accept(), if open.len() < MAX_CONNECTIONS => {
                    if let Ok((stream, _)) = taken {
                        let (state, uri) = (state.to_owned(), self.uri());
                        open.spawn(async move { tokio::time::timeout(HEAD_TIME, answer(stream, &state, &uri)).await.ok().flatten() });
                    }
                }
                Some(done) = open.join_next(), if !open.is_empty() => {
                    if let Ok(Some(arrival)) = done {
                        return arrival;
                    }
                }
            }
        }
    }
}

/// Responds to one request. Returns its URL if it is the expected callback.
async fn answer(mut stream: TcpStream, state: &str, uri: &str) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 1024];
        let read = stream.read(&mut chunk).await.ok()?;
        if read == 0 || head.len() + read > HEAD_BYTES {
            return None;
        }
        head.extend_from_slice(&chunk[..read]);
    }
    let arrival = arrival(&String::from_utf8_lossy(&head), state, uri);
    let (status, text) = match &arrival {
        Some(url) if url.contains("error=") => {
            ("200 OK", "Sign-in failed. You can close this page; see the terminal for details.")
        }
        Some(_) => ("200 OK", "aye received the response. You can close this page and return to the terminal."),
        None => ("404 Not Found", "Not found."),
    };
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         referrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    arrival
}

/// Returns the requested URL if the request is a GET for the callback path, with the numeric host and the expected
/// state.
fn arrival(head: &str, state: &str, uri: &str) -> Option<String> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let host = lines.find_map(|line| line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("host")))?.1.trim();
    let (base, _) = uri.strip_prefix("http://")?.split_once('/')?;
    let query = target.strip_prefix(PATH)?.strip_prefix('?')?;
    // Another host name indicates DNS rebinding: a page has changed the address of its own host name.
    if method != "GET" || host != base {
        return None;
    }
    let url = url::Url::parse(&format!("{uri}?{query}")).ok()?;
    let states: Vec<_> = url.query_pairs().filter(|(name, _)| name == "state").map(|(_, value)| value.into_owned()).collect();
    (states == [state]).then(|| url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn send(uri: &str, request: &str) -> String {
        let address = uri.strip_prefix("http://").unwrap().split('/').next().unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    #[tokio::test]
    async fn only_a_callback_with_the_correct_state_is_accepted() {
        let landing = CallbackServer::open(None).await.unwrap();
        let uri = landing.uri();
        let host = uri.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        let waiting = tokio::spawn(async move { landing.arrival("s1").await });
        for bad in [
            format!("GET /callback?code=x&state=s2 HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            format!("GET /callback?code=x HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            format!("GET /callback?code=x&state=s2&state=s1 HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            "GET /callback?code=x&state=s1 HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
            "GET /callback?code=x&state=s1 HTTP/1.1\r\n\r\n".to_owned(),
            format!("POST /callback?code=x&state=s1 HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            format!("GET /favicon.ico HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        ] {
            assert!(send(&uri, &bad).await.starts_with("HTTP/1.1 404"), "{bad}");
        }
        assert_eq!(send(&uri, &"x".repeat(HEAD_BYTES + 1)).await, "");
        let good = format!("GET /callback?code=c%201&state=s1 HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let page = send(&uri, &good).await;
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("close this page") && !page.contains("s1"), "{page}");
        assert_eq!(waiting.await.unwrap(), Ok(format!("{uri}?code=c%201&state=s1")));
        let address: std::net::SocketAddr = host.parse().unwrap();
        assert!(TcpStream::connect(address).await.is_err(), "the server no longer listens");
    }
}
